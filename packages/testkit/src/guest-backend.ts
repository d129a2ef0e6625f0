import {
  TiltyardError,
  chunkLength,
  type Backend,
  type CheckpointRef,
  type Datum,
  type Learner,
  type Sampler,
} from '@tiltyard/core'

/** What was asked of a backend, in the kinds by which services charge. Tokens count as often as a service may read them. */
export interface BackendUse {
  /** Tokens of prompts, for each sample apart. */
  promptTokens: number
  sampledTokens: number
  /** Tokens of data that were scored without learning. */
  forwardTokens: number
  /** Tokens of data that were learned from. */
  trainedTokens: number
  learners: number
  /** Saved or published by name. */
  checkpoints: number
}

export function noUse(): BackendUse {
  return {
    promptTokens: 0,
    sampledTokens: 0,
    forwardTokens: 0,
    trainedTokens: 0,
    learners: 0,
    checkpoints: 0,
  }
}

export interface GuestOptions {
  /** Is added to. */
  readonly use: BackendUse
  /** `asked`: a sample counts as long as it may become. `given`: as long as it became, unless it was aborted. */
  readonly sampled: 'asked' | 'given'
}

/** Checkpoints that a guest can't delete are gone after an hour, where the service keeps times. */
const TTL_SECONDS = 3_600

/**
 * A backend on a service that others use too: it lists only checkpoints of its own, deletes them when it is closed, and counts what it
 * asks for. Refused calls cost nothing and don't count.
 */
export function guestBackend(backend: Backend, { use, sampled }: GuestOptions): Backend {
  const own = new Map<string, CheckpointRef>()
  let closing: Promise<void> | undefined

  const keep = (ref: CheckpointRef) => {
    own.set(ref.path, ref)
    use.checkpoints += 1
    return ref
  }

  const guestSampler = (sampler: Sampler): Sampler => {
    const scored = <T>(length: number, score: Promise<T>) =>
      counted(score, () => {
        use.promptTokens += length
        // Services score a prompt while they sample one token.
        use.sampledTokens += 1
      })
    const { specVersion, version, contextWindow, checkpoint } = sampler
    const topLogprobs = sampler.topLogprobs?.bind(sampler)
    return {
      specVersion,
      version,
      contextWindow,
      ...(checkpoint !== undefined && { checkpoint }),
      sample(request, options) {
        const { n = 1, maxTokens, prompt } = request
        return counted(sampler.sample(request, options), (samples) => {
          use.promptTokens += n * prompt.length
          use.sampledTokens +=
            samples === undefined || sampled === 'asked'
              ? n * maxTokens
              : samples.reduce((sum, { ids }) => sum + ids.length, 0)
        })
      },
      logprobs: (prompt, options) => scored(prompt.length, sampler.logprobs(prompt, options)),
      ...(topLogprobs !== undefined && {
        topLogprobs: (prompt, k, options) => scored(prompt.length, topLogprobs(prompt, k, options)),
      }),
      close: () => sampler.close(),
    }
  }

  const guestLearner = (learner: Learner): Learner => ({
    specVersion: learner.specVersion,
    model: learner.model,
    get steps() {
      return learner.steps
    },
    forward: (data, loss) =>
      counted(learner.forward(data, loss), () => {
        use.forwardTokens += lengthOf(data)
      }),
    forwardBackward: (data, loss) =>
      counted(learner.forwardBackward(data, loss), () => {
        use.trainedTokens += lengthOf(data)
      }),
    optimStep: (adam) => learner.optimStep(adam),
    save: async (name, options) =>
      keep(await learner.save(name, { ttlSeconds: TTL_SECONDS, ...options })),
    async publish(options = {}) {
      const temporary = options.name === undefined ? {} : { ttlSeconds: TTL_SECONDS }
      const sampler = await learner.publish({ ...temporary, ...options })
      if (options.name !== undefined && sampler.checkpoint !== undefined) keep(sampler.checkpoint)
      return guestSampler(sampler)
    },
    close: () => learner.close(),
  })

  return {
    specVersion: backend.specVersion,
    name: backend.name,
    describe: () => backend.describe(),
    async learner(options) {
      const learner = await backend.learner(options)
      use.learners += 1
      return guestLearner(learner)
    },
    sampler: async (ref) => guestSampler(await backend.sampler(ref)),
    checkpoints() {
      const store = backend.checkpoints()
      const files = store.files?.bind(store)
      return {
        exists: (ref) => store.exists(ref),
        ...(files !== undefined && { files }),
        list: async () => (await store.list()).filter(({ path }) => own.has(path)),
        async delete(ref) {
          await store.delete(ref)
          own.delete(ref.path)
        },
      }
    },
    close() {
      closing ??= (async () => {
        // What can't be deleted has its time to live.
        const store = backend.checkpoints()
        await Promise.allSettled([...own.values()].map((ref) => store.delete(ref)))
        await backend.close()
      })()
      return closing
    },
  }
}

/** Counts a call once it is over: with its result, or without one when it was aborted under way. */
async function counted<T>(call: Promise<T>, count: (result: T | undefined) => void): Promise<T> {
  try {
    const result = await call
    count(result)
    return result
  } catch (error) {
    if (!TiltyardError.is(error)) count(undefined)
    throw error
  }
}

function lengthOf(data: readonly Datum[]): number {
  return data.reduce(
    (sum, { input }) => sum + input.reduce((length, chunk) => length + chunkLength(chunk), 0),
    0,
  )
}
