import { tokenChunk, type Conversation, type WeightedTokens } from '@tiltyard/core'
import { memoryRunIndex, simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import {
  defineSupervised,
  supervise,
  weightedDatum,
  type RunControl,
  type SupervisedConfig,
  type SupervisedExample,
  type SupervisedReport,
} from '../../src/index.ts'
import { batchIndices, meanNll, renderExamples } from '../../src/supervised/examples.ts'
import { joinRows } from '../../src/supervised/join-rows.ts'
import { letterBackend, letterRenderer, rightReply } from '../support/letters.ts'
import { recordingBackend } from '../support/recording-backend.ts'
import { newPlace, metricsOf, pass, weightsOf, type Place } from '../support/runs.ts'

const conversation = (task: string): Conversation => ({
  messages: [
    { role: 'user', content: task },
    { role: 'assistant', content: rightReply(task) },
  ],
})
const examples = (letters = 'abcdef'): readonly SupervisedExample[] =>
  Array.from(letters, (task) => ({ conversation: conversation(task) }))

function settings(more: Partial<SupervisedConfig> = {}): SupervisedConfig {
  return {
    run: 'letters',
    index: memoryRunIndex(),
    backend: letterBackend(),
    model: 'bigram',
    adaptation: 'full',
    renderer: letterRenderer(),
    examples: examples(),
    batchSize: 4,
    epochs: 10,
    optimizer: { learningRate: 0.3 },
    seed: 2,
    ...more,
  }
}

async function superviseThere(
  place: Place,
  more: Partial<SupervisedConfig> = {},
  control: RunControl = {},
) {
  const run = supervise(defineSupervised(settings({ ...place, ...more })), control)
  const reports: SupervisedReport[] = []
  for await (const report of run) reports.push(report)
  return { reports, result: await run.finish() }
}

/** A row whose first token is given. */
const rowOf = (ids: readonly number[]) => ({
  chunks: [tokenChunk(ids)],
  weights: Float32Array.from(ids, (_, at) => (at === 0 ? 0 : 1)),
})

/** The examples of a pass over ten, four in a step. */
const passOf = (epoch: number, seed: number) =>
  [0, 1, 2].flatMap((batch) => batchIndices(10, 4, 3 * epoch + batch, seed, 'shuffled'))

describe('data of supervised training', () => {
  test('statement 82: the mean negative log-likelihood goes by the weights', () => {
    const weights = Float32Array.of(0, 1, 1)
    const datum = { input: [tokenChunk([1, 2, 3])], targets: Int32Array.of(2, 3, 4), weights }
    expect(meanNll([datum], [[-1, -2, -3]])).toBe(2.5)
  })

  test('statement 82: weights move with their targets; by example they sum to 1', () => {
    const row = { chunks: [tokenChunk([1, 2, 3, 4, 5])], weights: Float32Array.of(0, 0, 1, 1, 1) }
    expect([...weightedDatum(row).weights]).toEqual([0, 1, 1, 1])
    const rendering = {
      renderer: undefined,
      trainOn: 'all_assistant_messages',
      contextWindow: undefined,
    } as const
    const weightsBy = (weighting: 'example' | 'token') =>
      renderExamples([{ rows: [row] }], { ...rendering, weighting }, 'examples')[0]!.map(
        ({ weights }) => [...weights!],
      )
    const third = expect.closeTo(1 / 3, 6) as number
    expect(weightsBy('example')).toEqual([[0, third, third, third]])
    expect(weightsBy('token')).toEqual([[0, 1, 1, 1]])
  })

  test('an example of several rows weighs 1 in all', () => {
    const [data] = renderExamples(
      [{ rows: [rowOf([1, 2, 3]), rowOf([1, 4, 5])] }],
      {
        renderer: undefined,
        trainOn: 'all_assistant_messages',
        weighting: 'example',
        contextWindow: undefined,
      },
      'examples',
    )
    expect(data!.map(({ weights }) => [...weights!])).toEqual([
      [0.25, 0.25],
      [0.25, 0.25],
    ])
  })

  test('each pass takes every example once, in an order that seed and pass decide', () => {
    expect(passOf(0, 1).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(passOf(0, 1)).toEqual(passOf(0, 1))
    expect(passOf(0, 1)).not.toEqual(passOf(1, 1))
    expect(passOf(0, 1)).not.toEqual(passOf(0, 2))
    expect(batchIndices(10, 4, 2, 1, 'shuffled')).toHaveLength(2)
  })

  test('a listed pass takes the examples as they stand, in every pass', () => {
    const listed = [0, 1, 2, 3].map((step) => batchIndices(10, 4, step, 1, 'listed'))
    expect(listed).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
      [0, 1, 2, 3],
    ])
  })

  test('rows that go on from one another become one, trained where either was', () => {
    const row = (ids: readonly number[], weights: readonly number[]) => ({
      chunks: [tokenChunk(ids)],
      weights: Float32Array.from(weights),
    })
    const plain = (rows: readonly WeightedTokens[]) =>
      rows.map(({ chunks, weights }) => [
        chunks.flatMap((chunk) => (chunk.type === 'tokens' ? [...chunk.ids] : [])),
        [...weights],
      ])
    const first = row([1, 2], [0, 1])
    expect(plain(joinRows([first, row([1, 2, 3, 4], [0, 0, 0, 1])]))).toEqual([
      [
        [1, 2, 3, 4],
        [0, 1, 0, 1],
      ],
    ])
    const other = row([1, 9, 3], [0, 0, 1])
    expect(joinRows([first, other])).toEqual([first, other])
    const image = { type: 'image', data: Uint8Array.of(1), format: 'png', tokens: 2 } as const
    const seen = { chunks: [tokenChunk([1, 2]), image], weights: Float32Array.of(0, 1, 0, 0) }
    expect(joinRows([first, seen])).toEqual([first, seen])
  })

  test.each<[string, SupervisedExample, Partial<SupervisedConfig>]>([
    [
      'examples.0: it has no target to train',
      { conversation: { messages: [{ role: 'user', content: 'ab' }] } },
      {},
    ],
    [
      'examples.0: 1 weights for 3 positions',
      { rows: [{ chunks: [tokenChunk([1, 2, 3])], weights: Float32Array.of(1) }] },
      {},
    ],
    [
      'examples.0: a sequence of 1 positions is too short',
      { rows: [{ chunks: [tokenChunk([1])], weights: Float32Array.of(1) }] },
      {},
    ],
    [
      "examples.0: it has 65 tokens, the model's context window 64",
      {
        rows: [
          {
            chunks: [tokenChunk(Array.from({ length: 65 }, () => 1))],
            weights: new Float32Array(65).fill(1),
          },
        ],
      },
      {},
    ],
  ])('%s is told before anything is claimed', async (message, example) => {
    const place = newPlace()
    await expect(superviseThere(place, { examples: [example] })).rejects.toThrow(message)
    await expect(place.index.run('letters')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a conversation needs a renderer', async () => {
    const { renderer: _, ...without } = settings()
    await expect(supervise(defineSupervised(without)).finish()).rejects.toThrow('needs a renderer')
  })
})

describe('a supervised training', () => {
  test('lowers the loss on what it trains and on what it holds out', async () => {
    const { reports, result } = await superviseThere(newPlace(), {
      examples: examples('abcde'),
      heldOut: examples('a'),
      evalEvery: 5,
      optimizer: { learningRate: 0.6 },
    })
    const losses = reports.map(({ values }) => values['train_mean_nll'] as number)
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 2)
    const held = reports.flatMap(({ evaluations }) => evaluations)
    expect(held.map(({ step }) => step)).toEqual([0, 5, 10, 15])
    expect(result.evaluations[0]!.values['nll']).toBeLessThan(
      (held[0]!.values['nll'] as number) / 4,
    )
    expect(result).toMatchObject({ end: 'completed', steps: 20, checkpoint: { name: 'final' } })
  })

  test('tells rate, loss and counts of each step, and records them before it is announced', async () => {
    const place = newPlace()
    const run = supervise(
      defineSupervised(
        settings({
          ...place,
          optimizer: { learningRate: 0.2, schedule: { shape: 'linear' } },
          epochs: 2,
        }),
      ),
    )
    const recorded: number[] = []
    const rates: unknown[] = []
    for await (const { step, values } of run) {
      const { metrics } = await place.index.run('letters')
      recorded.push(metrics.filter((row) => row.step === step).length)
      rates.push(values['optim/lr'])
      expect(values).toMatchObject({
        'progress/batch': step,
        num_loss_tokens: step % 2 === 0 ? 8 : 4,
        num_sequences: step % 2 === 0 ? 4 : 2,
      })
    }
    expect(recorded).toEqual([1, 1, 1, 1])
    expect(rates).toEqual([0.2, 0.15, 0.1, 0.05].map((rate) => expect.closeTo(rate, 10) as number))
  })

  test('makes the calls of a step while the one before is still answered', async () => {
    const place = newPlace()
    const { backend, calls } = recordingBackend(place.backend, {
      before: () => new Promise((resolve) => setTimeout(resolve, 5)),
    })
    const run = supervise(defineSupervised(settings({ ...place, backend, epochs: 2 })))
    for await (const { step } of run) {
      if (step > 0) break
      expect(calls.filter((call) => call === 'optimStep')).toHaveLength(2)
    }
    expect(await run.finish()).toMatchObject({ end: 'interrupted' })
  })

  test('goes on from its checkpoint to the same bytes; no batch is trained twice', async () => {
    const whole = newPlace()
    const more = { checkpoints: { every: 3 }, heldOut: examples('a'), evalEvery: 4, epochs: 6 }
    const { result } = await superviseThere(whole, more)
    const place = newPlace()
    const stop = new AbortController()
    const run = supervise(defineSupervised(settings({ ...place, ...more })), { stop: stop.signal })
    for await (const { step } of run) if (step === 4) stop.abort()
    const interrupted = await run.finish()
    expect(interrupted.end).toBe('interrupted')
    expect(interrupted.steps).toBeGreaterThan(4)
    const again = await superviseThere(place, more, { start: 'resume' })
    expect(again.reports[0]!.step).toBe(interrupted.steps)
    expect(await metricsOf(place)).toEqual(await metricsOf(whole))
    expect(await weightsOf(place.backend, again.result.checkpoint!.sampling!)).toBe(
      await weightsOf(whole.backend, result.checkpoint!.sampling!),
    )
  })

  test('other examples are another run', async () => {
    const place = newPlace()
    await superviseThere(place, { epochs: 1 })
    await expect(
      superviseThere(place, { epochs: 2, examples: examples('abcdeg') }, { start: 'resume' }),
    ).rejects.toThrow(/dataset: the run was begun with 6 examples/)
  })

  test('packs a step by its token budget', async () => {
    const place = newPlace()
    const { backend, data } = recordingBackend(place.backend)
    await superviseThere({ ...place, backend }, { tokensPerCall: 4, epochs: 1 })
    expect(data.map(({ length }) => length)).toEqual([2, 2, 2])
  })

  test('a failure ends it with its cause, an abort with its reason, within 2 s', async () => {
    const place = newPlace()
    const { backend } = recordingBackend(place.backend, {
      before(call) {
        if (call === 'optimStep') throw new Error('broke')
      },
    })
    await expect(superviseThere({ ...place, backend })).rejects.toThrow('broke')
    expect((await place.index.run('letters')).summary.status).toBe('failed')
    const deaf = newPlace()
    const clock = simulatedClock()
    const abort = new AbortController()
    const stuck = recordingBackend(deaf.backend, {
      before(call) {
        if (call !== 'optimStep') return undefined
        abort.abort(new Error('enough'))
        void pass(clock, 2_000)
        return new Promise<void>(() => {})
      },
    })
    const control = { clock, signal: abort.signal }
    await expect(superviseThere({ ...deaf, backend: stuck.backend }, {}, control)).rejects.toThrow(
      'enough',
    )
  })
})
