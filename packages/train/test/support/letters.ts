import {
  createPrompt,
  textOf,
  tokenChunk,
  type Backend,
  type Conversation,
  type Dataset,
  type Env,
  type EpisodeOutcome,
  type ParsedReply,
  type Renderer,
  type RewardRule,
  type TaskRef,
  type TaskSource,
} from '@tiltyard/core'
import { bigramBackend, memoryRunIndex } from '@tiltyard/testkit'

import {
  defineTraining,
  listDataset,
  type PlannedTask,
  type Training,
  type TrainingConfig,
} from '../../src/index.ts'

/**
 * A world that a table of bigrams can master: the prompt is one letter, and the right reply is the letter after it. Small enough
 * that a whole training takes milliseconds, and real in every part.
 */

/** Letters a–g; the last id ends a reply. */
export const VOCABULARY = 8
const STOP = VOCABULARY - 1
const FIRST = 'a'.charCodeAt(0)

const idsOf = (text: string) => Array.from(text, (letter) => letter.charCodeAt(0) - FIRST)
const lettersOf = (ids: Iterable<number>) =>
  Array.from(ids, (id) => (id === STOP ? '' : String.fromCharCode(FIRST + id))).join('')

const promptText = ({ messages }: Conversation) =>
  messages.map(({ content }) => textOf(content)).join('')

export function letterRenderer(): Renderer {
  const parse = (ids: Int32Array): ParsedReply => ({
    message: { role: 'assistant', content: lettersOf(ids) },
    termination: ids.at(-1) === STOP ? 'stop' : 'length',
    malformed: [],
    spans: [{ kind: 'text', text: lettersOf(ids) }],
  })
  return {
    specVersion: 'renderer/1',
    name: 'letters',
    fingerprint: 'letters:1',
    history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
    capabilities: { tools: true, images: false, reasoning: false },
    stop: { tokens: [STOP], strings: [] },
    prompt: (conversation) => createPrompt([tokenChunk(idsOf(promptText(conversation)))]),
    extend: (prompt, { ids }, { messages }) =>
      createPrompt(
        [tokenChunk(ids), ...messages.map(({ content }) => tokenChunk(idsOf(textOf(content))))],
        prompt,
      ),
    parse,
    stream: () => {
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
}

/** The reply that earns the reward: the letter after the task's. */
export function rightReply(task: string): string {
  return String.fromCharCode(task.charCodeAt(0) + 1)
}

function nearness(task: string, reply: string): number {
  if (reply === '') return 0
  const distance = Math.abs(reply.charCodeAt(0) - rightReply(task).charCodeAt(0))
  return 1 - distance / (VOCABULARY - 1)
}

export interface LetterSourceOptions {
  /** Called before an episode opens; what it throws fails the episode. */
  readonly onOpen?: (task: TaskRef) => void | Promise<void>
  /** The score of a reply. Default: 1 for the right first letter, less the further it is away, 0 for none. */
  readonly score?: (task: string, reply: string) => number
}

export function letterSource(options: LetterSourceOptions = {}): TaskSource {
  const score = options.score ?? nearness
  return {
    specVersion: 'task-source/1',
    name: 'letters',
    fingerprint: 'letters:1',
    steps: ['right'],
    async *tasks() {
      for (const id of 'abcdef') yield letterTask(id)
    },
    async prepare() {},
    async open(task) {
      await options.onOpen?.(task)
      return letterEnv(task.id, score)
    },
    async close() {},
  }
}

function letterTask(id: string, tags?: readonly string[]): TaskRef {
  return { id, fingerprint: `letter ${id}`, ...(tags === undefined ? {} : { tags }) }
}

function letterEnv(task: string, score: (task: string, reply: string) => number): Env {
  let said = ''
  let outcome: EpisodeOutcome = { end: { kind: 'completed' }, scores: {}, metrics: {} }
  return {
    specVersion: 'env/1',
    start: async () => ({ messages: [{ role: 'user', content: task }] }),
    async step(reply) {
      said = reply.content
      return { done: true }
    },
    async end(reason) {
      outcome = { ...outcome, end: reason }
    },
    score: async () => ({ ...outcome, scores: { right: { value: score(task, said) } } }),
    async close() {},
  }
}

const rightRule: RewardRule = {
  specVersion: 'reward-rule/1',
  name: 'right',
  check() {},
  reward({ scores }) {
    const score = scores['right']
    return score !== undefined && 'value' in score
      ? { reward: score.value }
      : { unscored: 'no score' }
  },
}

export function letterTasks(
  letters: string,
  size: number,
  source: TaskSource = letterSource(),
): readonly PlannedTask[] {
  return Array.from(letters, (id) => ({ source, task: letterTask(id), size, reward: rightRule }))
}

export function letterDataset(
  options: {
    readonly letters?: string
    readonly size?: number
    readonly groupsPerBatch?: number
    readonly epochs?: number
    readonly source?: TaskSource
  } = {},
): Dataset {
  const { letters = 'abcdef', size = 8, groupsPerBatch = 3, epochs = 6, source } = options
  return listDataset({
    name: 'letters',
    tasks: letterTasks(letters, size, source),
    groupsPerBatch,
    epochs,
  })
}

export function letterBackend(): Backend {
  return bigramBackend({ vocabularySize: VOCABULARY, contextWindow: 64, seed: 3 })
}

/** A training in this world. */
export function letterTraining(config: Partial<TrainingConfig> = {}): Training {
  return defineTraining({
    run: 'letters',
    index: memoryRunIndex(),
    backend: letterBackend(),
    model: 'bigram',
    adaptation: 'full',
    renderer: letterRenderer(),
    dataset: letterDataset(),
    limits: { replyTokens: 2 },
    optimizer: { learningRate: 0.3 },
    seed: 7,
    ...config,
  })
}
