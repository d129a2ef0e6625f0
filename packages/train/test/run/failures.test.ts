import type { Backend, Learner, RunIndex, Sampler } from '@tiltyard/core'
import { memoryRunIndex, simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { train, type RunControl, type TrainingConfig } from '../../src/index.ts'
import { telling } from '../support/interrupted-place.ts'
import { letterBackend, letterDataset, letterSource, letterTraining } from '../support/letters.ts'
import { recordingBackend } from '../support/recording-backend.ts'
import { newPlace, pass, trainThere, weightsOf } from '../support/runs.ts'

const dataset = () => letterDataset({ epochs: 3 })

/** What a run rejects with, and its record. No time passes on its clock by itself: what it waits for then never comes. */
async function failure(config: Partial<TrainingConfig>, control: RunControl = {}) {
  const index = memoryRunIndex()
  const training = letterTraining({ index, dataset: dataset(), ...config })
  const [ended] = await Promise.allSettled([
    train(training, { clock: simulatedClock(), ...control }).finish(),
  ])
  const error: unknown = ended.status === 'rejected' ? ended.reason : undefined
  const { summary, checkpoints, end, failures } = await index.run('letters')
  return { error, summary, checkpoints, end, failures }
}

/** What a run rejects with, which may not have begun. */
const failureOrNone = async (config: Partial<TrainingConfig>, control: RunControl) =>
  train(letterTraining({ dataset: dataset(), ...config }), control)
    .finish()
    .then(
      () => undefined,
      (error: unknown) => error,
    )

const absentJudge = () => Promise.reject(new Error('the judge is out'))
const hang = () => new Promise<never>(() => {})

describe('a failure', () => {
  test.each(['forwardBackward', 'optimStep', 'publish', 'save'])(
    'of the learner in %s ends the run with its cause at once, and is recorded',
    async (what) => {
      let calls = 0
      const { backend } = recordingBackend(letterBackend(), {
        before(call) {
          if (call.startsWith(what) && (calls += 1) === 2) throw new Error(`${what} broke`)
        },
      })
      const failed = await failure({ backend, checkpoints: { every: 1 } })
      expect(failed.error).toMatchObject({ message: `${what} broke` })
      expect(failed.summary.status).toBe('failed')
      expect(failed.failures.at(-1)).toMatchObject({
        phase: 'train',
        error: { message: `${what} broke` },
      })
    },
  )

  test('F45: of forward-backward leaves the checkpoint of the step before, from which the run goes on to the same end', async () => {
    const whole = newPlace()
    const { result } = await trainThere(whole, { dataset: dataset() })
    const place = newPlace()
    let calls = 0
    const { backend } = recordingBackend(place.backend, {
      before(call) {
        if (call.startsWith('forwardBackward') && (calls += 1) === 3) throw new Error('500')
      },
    })
    const settings = { dataset: dataset(), checkpoints: { every: 1 } }
    await expect(trainThere({ ...place, backend }, settings)).rejects.toThrow('500')
    const { checkpoints } = await place.index.run('letters')
    expect(checkpoints.map(({ step }) => step)).toEqual([1, 2])
    const resumed = await trainThere(place, settings, { start: 'resume' })
    expect(resumed.reports[0]!.step).toBe(2)
    expect(await weightsOf(place.backend, resumed.result.checkpoint!.sampling!)).toBe(
      await weightsOf(whole.backend, result.checkpoint!.sampling!),
    )
  })

  test('of a play that nobody may repeat ends the run with its cause within a second, its siblings cancelled', async () => {
    const clock = simulatedClock()
    let opened = 0
    const source = letterSource({
      async onOpen() {
        opened += 1
        if (opened > 3) await hang()
        if (opened === 3) {
          void pass(clock, 1_000)
          throw new Error('no such database')
        }
      },
    })
    const failed = await failure(
      {
        dataset: letterDataset({ source }),
        rollout: { failures: { kind: 'failFast' }, waits: { cancelMs: 50 } },
      },
      { clock },
    )
    expect(String(failed.error)).toContain('no such database')
  })

  test('of a reading ends the run with its cause', async () => {
    const letters = dataset()
    const broken = {
      ...letters,
      batch: (step: number, seed: number) =>
        step === 2 ? Promise.reject(new Error('the file is gone')) : letters.batch(step, seed),
    }
    const failed = await failure({ dataset: broken })
    expect(failed.error).toMatchObject({ message: 'the file is gone' })
    expect(failed.summary.status).toBe('failed')
  })

  test('of an evaluation ends the run with its cause', async () => {
    const evaluations = [{ name: 'judged', evaluate: absentJudge }]
    const failed = await failure({ evaluations, evalEvery: 2 })
    expect(failed.error).toMatchObject({ message: 'the judge is out' })
  })

  test('of the record ends the run: nothing goes on that is not written down', async () => {
    const index = memoryRunIndex()
    let appended = 0
    const full: RunIndex = {
      ...index,
      async claim(record, options) {
        const writer = await index.claim(record, options)
        return {
          epoch: writer.epoch,
          async append(event) {
            if (event.type === 'metrics' && (appended += 1) === 2) throw new Error('no space left')
            await writer.append(event)
          },
          flush: () => writer.flush(),
          close: () => writer.close(),
        }
      },
    }
    const run = train(letterTraining({ index: full, dataset: dataset() }))
    await expect(run.finish()).rejects.toThrow('no space left')
    const { steps } = await index.run('letters')
    expect(steps.map(({ step }) => step)).toEqual([0])
  })

  test('after which the loop was left is not swallowed by finish', async () => {
    const { backend } = recordingBackend(letterBackend(), {
      before(call) {
        if (call.startsWith('forwardBackward')) throw new Error('broke')
      },
    })
    const run = train(letterTraining({ backend, dataset: dataset() }))
    await expect(run.finish()).rejects.toThrow('broke')
    await expect(run.finish()).rejects.toThrow('its loop threw the cause')
  })
})

describe('stopping', () => {
  test('F42: a stop while sampling drops the step, saves, and says that it was interrupted', async () => {
    const place = newPlace()
    const stop = new AbortController()
    const { reports, result } = await trainThere(
      place,
      { dataset: dataset() },
      {
        stop: stop.signal,
        observer(event) {
          if (event.type === 'group' && event.step === 2) stop.abort()
        },
      },
    )
    expect(reports.map(({ step }) => step)).toEqual([0, 1])
    const checkpoint = { name: '000002', step: 2 }
    expect(result).toMatchObject({ end: 'interrupted', steps: 2, checkpoint })
    const { summary } = await place.index.run('letters')
    expect(summary).toMatchObject({ status: 'interrupted', step: 1 })
  })

  test('F42: a stop before the first step saves nothing and leaves a run that can go on', async () => {
    const place = newPlace()
    const stopped = await trainThere(place, { dataset: dataset() }, { stop: AbortSignal.abort() })
    expect(stopped).toMatchObject({ reports: [], result: { end: 'interrupted', steps: 0 } })
    const { reports } = await trainThere(place, { dataset: dataset() }, { start: 'resume' })
    expect(reports).toHaveLength(6)
  })

  test('F42: a stop in the middle of a step with several updates finishes the step first', async () => {
    const place = newPlace()
    const stop = new AbortController()
    const { backend, calls } = recordingBackend(place.backend, {
      before(call) {
        if (call === 'optimStep') stop.abort()
      },
    })
    let plays = 0
    const source = letterSource({ score: () => (plays += 1) % 2 })
    const { reports, result } = await trainThere(
      { ...place, backend },
      {
        dataset: letterDataset({ groupsPerBatch: 4, source }),
        pipeline: { substeps: 2, minibatches: 2 },
      },
      { stop: stop.signal },
    )
    expect(reports).toHaveLength(1)
    expect(result).toMatchObject({ end: 'interrupted', steps: 1 })
    expect(calls.filter((call) => call === 'optimStep')).toHaveLength(2)
  })

  test('leaving the loop is a soft stop', async () => {
    const place = newPlace()
    const run = train(letterTraining({ ...place, dataset: dataset() }))
    for await (const { step } of run) if (step === 1) break
    const result = await run.finish()
    expect(result).toMatchObject({ end: 'interrupted', checkpoint: { step: result.steps } })
    expect(result.steps).toBeGreaterThanOrEqual(2)
  })

  test('a signal ends the run within 2 s with its reason; nothing is saved, and the run can go on', async () => {
    const clock = simulatedClock()
    const abort = new AbortController()
    const reason = new Error('second Ctrl-C')
    const source = letterSource({
      onOpen() {
        if (!abort.signal.aborted) void pass(clock, 2_000)
        abort.abort(reason)
        return hang()
      },
    })
    const failed = await failure(
      { dataset: letterDataset({ source }), rollout: { waits: { cancelMs: 50 } } },
      { clock, signal: abort.signal },
    )
    expect(failed.error).toBe(reason)
    expect(failed.summary.status).toBe('interrupted')
    expect(failed.checkpoints).toEqual([])
  })

  test('a signal ends the run within 2 s though learner and sampler never answer', async () => {
    const backend = letterBackend()
    const clock = simulatedClock()
    const abort = new AbortController()
    const deaf: Backend = {
      ...backend,
      async learner(options) {
        const learner = await backend.learner(options)
        const stuck: Learner = {
          ...learner,
          steps: 0,
          forwardBackward() {
            abort.abort(new Error('enough'))
            void pass(clock, 2_000)
            return hang()
          },
          close: hang,
          async publish(publishing) {
            const sampler: Sampler = await learner.publish(publishing)
            return { ...sampler, version: sampler.version, close: hang }
          },
        }
        return stuck
      },
    }
    const failed = await failure({ backend: deaf }, { clock, signal: abort.signal })
    expect(failed.error).toMatchObject({ message: 'enough' })
  })

  test.each(['describe', 'learner', 'publish'] as const)(
    'F42: a signal ends the run at once though %s of the backend never answers; what opens later is closed',
    async (what) => {
      const backend = letterBackend()
      const abort = new AbortController()
      let answer = () => {}
      let closed = 0
      const stuck = async () => {
        abort.abort(new Error('enough'))
        await new Promise<void>((resolve) => {
          answer = resolve
        })
      }
      const deaf: Backend = {
        ...backend,
        async describe() {
          if (what === 'describe') await stuck()
          return backend.describe()
        },
        async learner(options) {
          if (what === 'learner') await stuck()
          const learner = await backend.learner(options)
          return {
            ...learner,
            steps: 0,
            async publish(publishing) {
              if (what === 'publish') await stuck()
              return learner.publish(publishing)
            },
            async close() {
              closed += 1
              await learner.close()
            },
          }
        },
      }
      const failed = await failureOrNone({ backend: deaf }, { signal: abort.signal })
      expect(failed).toMatchObject({ message: 'enough' })
      answer()
      await expect.poll(() => closed).toBe(what === 'describe' ? 0 : 1)
    },
  )

  test('F21: an abort at any moment leaves no rejection that nobody holds', async () => {
    const unheld: unknown[] = []
    const note = (reason: unknown) => unheld.push(reason)
    process.on('unhandledRejection', note)
    try {
      for (let round = 0; round < 12; round += 1) {
        const abort = new AbortController()
        let moments = 0
        const there = telling(newPlace(), () => {
          moments += 1
          if (moments === 1 + 97 * round) abort.abort(new Error('enough'))
        })
        const running = train(
          letterTraining({
            ...there,
            dataset: letterDataset({ epochs: 20 }),
            pipeline: { maxStaleness: round % 3, minibatches: round % 2 === 0 ? 3 : 1 },
            evaluations: [{ name: 'held', dataset: letterDataset({ epochs: 1 }) }],
            evalEvery: 1,
            checkpoints: { every: 1 },
          }),
          { signal: abort.signal },
        )
        await expect(running.finish()).rejects.toThrow('enough')
      }
      // A rejection that nobody holds is told once the microtasks have run.
      await new Promise((resolve) => setImmediate(resolve))
    } finally {
      process.off('unhandledRejection', note)
    }
    expect(unheld).toEqual([])
  })
})
