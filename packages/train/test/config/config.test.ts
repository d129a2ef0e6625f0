import type { Backend, Capabilities } from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'
import { describe, expect, expectTypeOf, test } from 'vitest'
import type { z } from 'zod'

import type { supervisedKeys, trainingKeys, whereKeys } from '../../src/config/schema.ts'
import {
  defineSupervised,
  defineTraining,
  listDataset,
  train,
  type SupervisedConfig,
  type TrainingConfig,
} from '../../src/index.ts'
import {
  letterBackend,
  letterDataset,
  letterRenderer,
  letterTasks,
  letterTraining,
} from '../support/letters.ts'

const base = () => letterTraining().config
const define = (more: object) => () => defineTraining({ ...base(), ...more })

describe('the configuration of a training', () => {
  test('F74: an unknown key is an error that names the nearest right one, at any depth', () => {
    expect(define({ evlaEvery: 4 })).toThrow('unknown key "evlaEvery"; did you mean "evalEvery"?')
    expect(define({ pipeline: { maxStalenes: 1 } })).toThrow(
      'pipeline: unknown key "maxStalenes"; did you mean "maxStaleness"?',
    )
    expect(define({ limits: { max_reply_tokens: 1 } })).toThrow(
      /limits: unknown key "max_reply_tokens"/,
    )
    expect(define({ rollout: { waits: { replyMS: 1, opnMs: 2 } } })).toThrow(
      'did you mean "openMs"?',
    )
    expect(
      define({ optimizer: { learningRate: 1, schedule: { shape: 'linear', warmUps: 3 } } }),
    ).toThrow('optimizer.schedule: unknown key "warmUps"; did you mean "warmup"?')
    const evaluations = [{ name: 'x', dataset: letterDataset({ epochs: 1 }), samplng: {} }]
    expect(define({ evaluations })).toThrow(
      'evaluations.0: unknown key "samplng"; did you mean "sampling"?',
    )
    expect(
      define({
        warmStart: {
          examples: [{ rows: [] }],
          batchSize: 1,
          optimizer: { learningRate: 1 },
          batchsize: 2,
        },
      }),
    ).toThrow('warmStart: unknown key "batchsize"; did you mean "batchSize"?')
  })

  test('every mistake is told at once, each with its place', () => {
    const wrong = define({ model: '', optimizer: { learningRate: -1 }, steps: 0 })
    const places = ['model', 'steps', 'optimizer.learningRate'].map((at) =>
      expect.objectContaining({ at }),
    )
    expect(wrong).toThrow(
      expect.objectContaining({ mistakes: expect.arrayContaining(places) as unknown }),
    )
  })

  test('an object of another contract is refused by the version that is wanted', () => {
    expect(define({ renderer: letterBackend() })).toThrow(
      'renderer: expected an object with specVersion "renderer/1"',
    )
    expect(define({ index: {} })).toThrow(
      'index: expected an object with specVersion "run-index/1"',
    )
  })

  test.each([
    [{ adaptation: { rnak: 4 } }, 'adaptation: expected "full" or { rank, alpha?, seed? }'],
    [
      { loss: { name: 'cross_entropy' } },
      'loss.name: expected a loss for sampled tokens by its name',
    ],
    [{ loss: { name: 'ppo', clipLow: 1.2, clipHigh: 0.8 } }, 'the lower one must not be higher'],
    [{ kl: { reference: { model: 'bigram' }, coefficient: 0 } }, 'kl.coefficient'],
    [
      { kl: { reference: {}, coefficient: 1 } },
      'kl.reference: expected { model } or { checkpoint }',
    ],
    [
      { evaluations: [{ name: 'x' }] },
      'evaluations.0: an evaluation has either a dataset, or a function "evaluate"',
    ],
    [{ rollout: { failures: { kind: 'retyr' } } }, 'rollout.failures'],
  ])('%j is refused with what is expected', (more, message) => {
    expect(define(more)).toThrow(message)
  })

  test('keys that do not go together are refused before anything runs', () => {
    const kl = { reference: { model: 'bigram' }, coefficient: 0.1 }
    expect(define({ kl, pipeline: { minibatches: 2 } })).toThrow('set pipeline.minibatches to 1')
    const held = { name: 'held', dataset: letterDataset({ epochs: 1 }) }
    expect(define({ evaluations: [held, held] })).toThrow('two evaluations are named "held"')
    const endless = listDataset({ name: 'endless', tasks: letterTasks('a', 2), groupsPerBatch: 1 })
    expect(define({ evaluations: [{ name: 'held', dataset: endless }] })).toThrow(
      'this dataset has no end',
    )
    expect(define({ dataset: endless })).toThrow(
      'the dataset endless has no end; say how many steps',
    )
    expect(define({ dataset: endless, steps: 3 })).not.toThrow()
  })

  test('the checked keys are those of the types', () => {
    type Checked = z.output<z.ZodObject<typeof whereKeys & typeof trainingKeys>>
    expectTypeOf<keyof Checked>().toEqualTypeOf<keyof TrainingConfig>()
    type CheckedSupervised = z.output<z.ZodObject<typeof whereKeys & typeof supervisedKeys>>
    expectTypeOf<keyof CheckedSupervised>().toEqualTypeOf<
      Exclude<keyof SupervisedConfig, 'renderer'>
    >()
  })

  test('a supervised training is checked alike', () => {
    const { run, index, backend, model } = base()
    const examples = [{ conversation: { messages: [{ role: 'user', content: 'a' }] } }]
    const supervised = (more: object) => () =>
      defineSupervised({
        run,
        index,
        backend,
        model,
        examples,
        batchSize: 1,
        optimizer: { learningRate: 1 },
        ...more,
      } as SupervisedConfig)
    expect(supervised({})).not.toThrow()
    expect(supervised({ renderers: letterRenderer() })).toThrow('did you mean "renderer"?')
    expect(supervised({ examples: [] })).toThrow('at least one example')
    expect(supervised({ examples: [{ text: 'a' }] })).toThrow(
      'examples.0: expected { conversation, trainOn? } or { rows }',
    )
  })
})

/** What a training is refused with, before its run is claimed. */
async function refusal(more: Partial<TrainingConfig>): Promise<string> {
  const index = memoryRunIndex()
  const message = await train(letterTraining({ index, ...more }))
    .finish()
    .then(() => 'nothing', String)
  await expect(index.run('letters')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  return message
}

const backendWith = (changed: Partial<Capabilities>): Backend => {
  const backend = letterBackend()
  return { ...backend, describe: async () => ({ ...(await backend.describe()), ...changed }) }
}

describe('a configuration against its backend', () => {
  test('a model that there is not is refused with the nearest', async () => {
    expect(await refusal({ model: 'bigrams' })).toMatch(
      'model: unknown model "bigrams"; did you mean "bigram"?',
    )
  })

  test('a loss, or an adaptation, that the backend lacks is refused', async () => {
    const backend = backendWith({ losses: ['cross_entropy', 'ppo'], adaptations: ['lora'] })
    expect(await refusal({ backend, adaptation: { rank: 4 } })).toMatch(
      /loss.name: unknown loss "importance_sampling"/,
    )
    expect(await refusal({ backend, loss: { name: 'ppo' } })).toMatch(
      'adaptation: bigram trains lora, not full',
    )
  })

  test('dro without a mask is refused: it would train prompts and observations', async () => {
    expect(
      await refusal({ backend: backendWith({ mask: false }), loss: { name: 'dro', beta: 0.05 } }),
    ).toMatch(/dro pulls every token/)
  })

  test('tempered or truncated samples are refused unless they are allowed', async () => {
    expect(await refusal({ sampling: { temperature: 0.7 } })).toMatch(/set allowTempered/)
    expect(await refusal({ sampling: { topK: 5 } })).toMatch(/set allowTempered/)
    expect(await refusal({ sampling: { topP: 0.9 } })).toMatch(/set allowTempered/)
    const run = train(
      letterTraining({ sampling: { temperature: 0.7 }, allowTempered: true, steps: 1 }),
    )
    expect(await run.finish()).toMatchObject({ steps: 1 })
  })

  test('a reward rule that its source can not serve is refused before anything is played', async () => {
    const rule = {
      ...letterTasks('a', 2)[0]!.reward,
      check: (steps: readonly string[]) => {
        throw new Error(`no step "answer" among ${steps.join()}`)
      },
    }
    const tasks = letterTasks('ab', 2).map((task) => ({ ...task, reward: rule }))
    expect(
      await refusal({ dataset: listDataset({ name: 'l', tasks, groupsPerBatch: 2, epochs: 1 }) }),
    ).toMatch('no step "answer" among right')
  })
})
