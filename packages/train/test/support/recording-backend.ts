import type { Backend, Datum, Learner, LossResult, Sampler } from '@tiltyard/core'

/** What is done to a backend, in order: `learner`, `forwardBackward 3`, `optimStep`, `save 000002`, `publish`, `publish 000002`. */
export interface Recording {
  readonly backend: Backend
  readonly calls: readonly string[]
  /** Data of the forward-backward calls. */
  readonly data: readonly (readonly Datum[])[]
  /** Learning rates of the optimizer steps. */
  readonly rates: readonly number[]
  /** Samplers that were made and not closed. */
  readonly open: ReadonlySet<Sampler>
}

export interface RecordingOptions {
  /** Throws to fail a call, before it is made. Told the call as it is recorded. */
  readonly before?: (call: string) => void | Promise<void>
  /** Holds the answer of a saving, which was made. Told the call as it is recorded. */
  readonly afterSaving?: (call: string) => Promise<void>
  /** Changes what a forward-backward answers. */
  readonly answer?: (result: LossResult) => LossResult
}

export function recordingBackend(backend: Backend, options: RecordingOptions = {}): Recording {
  const calls: string[] = []
  const data: (readonly Datum[])[] = []
  const rates: number[] = []
  const open = new Set<Sampler>()
  const note = async (call: string) => {
    calls.push(call)
    await options.before?.(call)
  }
  const counted = (sampler: Sampler): Sampler => {
    const own: Sampler = {
      ...sampler,
      version: sampler.version,
      async close() {
        open.delete(own)
        await sampler.close()
      },
    }
    open.add(own)
    return own
  }
  const recorded = (learner: Learner): Learner => ({
    specVersion: 'learner/1',
    model: learner.model,
    get steps() {
      return learner.steps
    },
    async forward(batch, loss) {
      await note(`forward ${batch.length}`)
      return await learner.forward(batch, loss)
    },
    async forwardBackward(batch, loss) {
      data.push(batch)
      await note(`forwardBackward ${batch.length}`)
      const result = await learner.forwardBackward(batch, loss)
      return options.answer?.(result) ?? result
    },
    async optimStep(adam) {
      rates.push(adam.learningRate)
      await note('optimStep')
      return await learner.optimStep(adam)
    },
    async save(name, saving) {
      const call = `save ${shortName(name)}`
      await note(call)
      const saved = await learner.save(name, saving)
      await options.afterSaving?.(call)
      return saved
    },
    async publish(publishing = {}) {
      const { name } = publishing
      await note(name === undefined ? 'publish' : `publish ${shortName(name)}`)
      return counted(await learner.publish(publishing))
    },
    async close() {
      calls.push('close')
      await learner.close()
    },
  })
  return {
    calls,
    data,
    rates,
    open,
    backend: {
      ...backend,
      async learner(learnerOptions) {
        const { from, optimizer } = learnerOptions
        await note(
          from === undefined
            ? 'learner'
            : `learner from ${shortName(from.path.split('/').at(-1)!)}${optimizer === false ? ' without optimizer' : ''}`,
        )
        return recorded(await backend.learner(learnerOptions))
      },
      async sampler(ref) {
        return counted(await backend.sampler(ref))
      },
    },
  }
}

/** Names carry run and epoch in front, which tests do not care for. */
function shortName(name: string): string {
  return name.split('-').at(-1)!
}
