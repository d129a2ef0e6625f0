import { localBackend } from '@tiltyard/backend-local'
import {
  createPrompt,
  textOf,
  tokenChunk,
  type Conversation,
  type Env,
  type EpisodeOutcome,
  type ParsedReply,
  type Renderer,
  type RewardRule,
  type TaskSource,
} from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { defineTraining, listDataset, type Training } from '@tiltyard/train'

/**
 * A training that is real in every part and small enough to be killed many times: episodes of two turns over an alphabet of eight,
 * a transformer of two thousand weights, a checkpoint after every step, evaluations and a warm start.
 */

/** Letters a–g; the last id ends a reply. */
const VOCABULARY = 8
const STOP = VOCABULARY - 1
const FIRST = 'a'.charCodeAt(0)
const STEPS = 8

const idsOf = (text: string) => Array.from(text, (letter) => letter.charCodeAt(0) - FIRST)
const lettersOf = (ids: Iterable<number>) =>
  Array.from(ids, (id) => (id === STOP ? '' : String.fromCharCode(FIRST + id))).join('')
const promptText = ({ messages }: Conversation) =>
  messages.map(({ content }) => textOf(content)).join('')
const next = (letter: string) => String.fromCharCode(letter.charCodeAt(0) + 1)

function parse(ids: Int32Array): ParsedReply {
  return {
    message: { role: 'assistant', content: lettersOf(ids) },
    termination: ids.at(-1) === STOP ? 'stop' : 'length',
    malformed: [],
    spans: [{ kind: 'text', text: lettersOf(ids) }],
  }
}

const renderer: Renderer = {
  specVersion: 'renderer/1',
  name: 'letters',
  fingerprint: 'letters:1',
  history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
  capabilities: { tools: false, images: false, reasoning: false },
  stop: { tokens: [STOP], strings: [] },
  prompt: (conversation) => createPrompt([tokenChunk(idsOf(promptText(conversation)))]),
  extend: (prompt, { ids }, { messages }) =>
    createPrompt(
      [tokenChunk(ids), ...messages.map(({ content }) => tokenChunk(idsOf(textOf(content))))],
      prompt,
    ),
  parse,
  stream() {
    const pieces: number[] = []
    return {
      push(ids) {
        pieces.push(...ids)
        return []
      },
      end: () => ({ deltas: [], reply: parse(Int32Array.from(pieces)) }),
    }
  },
  supervised({ messages }) {
    const parts = messages.map(({ role, content }) => ({
      ids: [...idsOf(textOf(content)), ...(role === 'assistant' ? [STOP] : [])],
      weight: role === 'assistant' ? 1 : 0,
    }))
    return [
      {
        chunks: [tokenChunk(parts.flatMap(({ ids }) => ids))],
        weights: Float32Array.from(parts.flatMap(({ ids, weight }) => ids.map(() => weight))),
      },
    ]
  },
}

const source: TaskSource = {
  specVersion: 'task-source/1',
  name: 'letters',
  fingerprint: 'letters:1',
  steps: ['near'],
  async *tasks() {},
  async prepare() {},
  open: async ({ id }) => letterEnv(id),
  async close() {},
}

const nearness = (shown: string, reply: string) =>
  reply === '' ? 0 : 1 - Math.abs(reply.charCodeAt(0) - next(shown).charCodeAt(0)) / VOCABULARY

/** Shows a letter, then the one after it; each reply should be the next letter. */
function letterEnv(task: string): Env {
  const replies: string[] = []
  let outcome: EpisodeOutcome = { end: { kind: 'completed' }, scores: {}, metrics: {} }
  return {
    specVersion: 'env/1',
    start: async () => ({ messages: [{ role: 'user', content: task }] }),
    async step(reply) {
      replies.push(reply.content)
      if (replies.length === 2) return { done: true }
      return { done: false, messages: [{ role: 'user', content: next(task) }], turn: {} }
    },
    async end(end) {
      outcome = { ...outcome, end }
    },
    async score() {
      const [first = '', second = ''] = replies
      const value = nearness(task, first) + nearness(next(task), second)
      return { ...outcome, scores: { near: { value } } }
    },
    async close() {},
  }
}

const rule: RewardRule = {
  specVersion: 'reward-rule/1',
  name: 'near',
  check() {},
  reward({ scores }) {
    const score = scores['near']
    return score !== undefined && 'value' in score ? { reward: score.value } : { unscored: 'none' }
  },
}

const tasks = (letters: string, size: number) =>
  Array.from(letters, (id) => ({ source, task: { id, fingerprint: id }, size, reward: rule }))

export function smallTraining(folder: string): Training {
  return defineTraining({
    run: 'small',
    index: fsRunIndex({ folder: `${folder}/runs`, batchMs: 20 }),
    backend: localBackend({
      models: {
        tiny: {
          shape: {
            vocabularySize: VOCABULARY,
            width: 16,
            layers: 1,
            heads: 2,
            kvHeads: 1,
            headSize: 8,
            hidden: 32,
            contextWindow: 32,
          },
          initial: { seed: 5 },
        },
      },
      folder: `${folder}/checkpoints`,
      threads: 1,
      maxRows: 16,
      microBatchTokens: 128,
    }),
    model: 'tiny',
    adaptation: 'full',
    renderer,
    dataset: listDataset({ name: 'letters', tasks: tasks('abcde', 4), groupsPerBatch: 3 }),
    steps: STEPS,
    evaluations: [
      {
        name: 'held',
        dataset: listDataset({ name: 'held', tasks: tasks('ab', 2), groupsPerBatch: 2, epochs: 1 }),
      },
    ],
    evalEvery: 3,
    seed: 3,
    limits: { replyTokens: 2 },
    optimizer: { learningRate: 0.01, clipNorm: 1 },
    checkpoints: { every: 4, rolling: 1 },
    warmStart: {
      examples: Array.from('abcde', (task) => ({
        conversation: {
          messages: [
            { role: 'user', content: task },
            { role: 'assistant', content: next(task) },
          ],
        },
      })),
      batchSize: 2,
      epochs: 2,
      optimizer: { learningRate: 0.01 },
      checkpoints: { every: 2 },
    },
  })
}
