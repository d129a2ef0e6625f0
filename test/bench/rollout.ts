/**
 * What rollout itself costs: groups of 16 episodes with 8 replies of 32 tokens and tool results of 500, over a sampler that
 * answers at once and a renderer whose tokens are ready. Rollouts per second of processor time, which other work on the machine
 * disturbs less; cost per turn at 8, 32 and 128 turns; the heap over 10,000 episodes.
 *
 *   node --expose-gc --import tsx test/bench/rollout.ts [--groups 60] [--record]
 */
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import {
  createPrompt,
  type AssistantMessage,
  type Env,
  type GroupPlan,
  type ParsedReply,
  type Renderer,
  type RunWriter,
  type Sampler,
  type TaskSource,
} from '@tiltyard/core'
import { createSlots, playBatch, type RolloutOptions } from '@tiltyard/rollout'

const GROUP = 16
const REPLY_TOKENS = 32
const RESULT_TOKENS = 500

const { values } = parseArgs({
  options: {
    groups: { type: 'string', default: '60' },
    record: { type: 'boolean', default: false },
  },
})

const STOP = 1
const replyIds = new Int32Array(REPLY_TOKENS).fill(7)
replyIds[REPLY_TOKENS - 1] = STOP
const sample = {
  ids: replyIds,
  logprobs: new Float32Array(REPLY_TOKENS).fill(-1),
  stop: 'stop',
} as const
const result = { type: 'tokens', ids: new Int32Array(RESULT_TOKENS).fill(9) } as const
const message: AssistantMessage = {
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call', name: 'look', arguments: {} }],
}
const parsed: ParsedReply = { message, termination: 'stop', malformed: [], spans: [] }
const text = 'x'.repeat(RESULT_TOKENS)

const sampler: Sampler = {
  specVersion: 'sampler/1',
  version: { id: 'bench', step: 0 },
  contextWindow: 10_000_000,
  sample: async () => [sample],
  logprobs: async () => new Float32Array(),
  async close() {},
}

/** Every message is 500 tokens that are there already. */
const renderer: Renderer = {
  specVersion: 'renderer/1',
  name: 'bench',
  fingerprint: 'bench',
  history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
  capabilities: { tools: true, images: false, reasoning: false },
  stop: { tokens: [STOP], strings: [] },
  prompt: () => createPrompt([result]),
  extend: (prompt, reply) => createPrompt([{ type: 'tokens', ids: reply.ids }, result], prompt),
  parse: () => parsed,
  stream: () => ({ push: () => [], end: () => ({ deltas: [], reply: parsed }) }),
  supervised: () => [],
}

function envOf(turns: number): Env {
  let steps = 0
  const outcome = {
    end: { kind: 'completed' },
    scores: { score: { value: 1 } },
    metrics: {},
  } as const
  return {
    specVersion: 'env/1',
    start: async () => ({ messages: [{ role: 'user', content: text }] }),
    async step() {
      steps += 1
      if (steps === turns) return { done: true }
      return { done: false, messages: [{ role: 'tool', toolCallId: 'call', content: text }] }
    },
    async end() {},
    score: async () => outcome,
    async close() {},
  }
}

function planOf(turns: number): GroupPlan {
  const source: TaskSource = {
    specVersion: 'task-source/1',
    name: 'bench',
    fingerprint: 'bench',
    steps: ['score'],
    async *tasks() {},
    async prepare() {},
    open: async () => envOf(turns),
    async close() {},
  }
  return {
    source,
    task: { id: 'task', fingerprint: 'task' },
    size: GROUP,
    seed: 1,
    reward: {
      specVersion: 'reward-rule/1',
      name: 'score',
      check() {},
      reward: () => ({ reward: 1 }),
    },
  }
}

const writer: RunWriter = { epoch: 1, async append() {}, async flush() {}, async close() {} }
const options: RolloutOptions = {
  seed: 1,
  policy: { sampler, renderer, sampling: {} },
  slots: createSlots(1_000),
  ...(values.record ? { writer } : {}),
}

/** Seconds of processor time to play so many groups. */
async function play(groups: number, turns: number): Promise<number> {
  const plans = Array.from({ length: groups }, () => planOf(turns))
  const begin = process.cpuUsage()
  let episodes = 0
  for await (const group of playBatch(plans, { split: 'train', step: 0 }, options))
    episodes += group.episodes.length
  if (episodes !== groups * GROUP) throw new Error(`${episodes} episodes`)
  const { user, system } = process.cpuUsage(begin)
  return (user + system) / 1e6
}

const groups = Number(values.groups)
await play(20, 8)
const seconds = Math.min(await play(groups, 8), await play(groups, 8), await play(groups, 8))
const rollouts = (groups * GROUP) / seconds
console.log(`rollouts: ${Math.round(rollouts)}/s, ${Math.round(rollouts * 8)} replies/s`)

for (const turns of [8, 32, 128]) {
  const few = Math.max(2, Math.round((groups * 8) / turns / 2))
  const best = Math.min(await play(few, turns), await play(few, turns), await play(few, turns))
  const microseconds = (best * 1e6) / (few * GROUP * turns)
  console.log(`${turns} turns: ${microseconds.toFixed(1)} µs a turn`)
}

const { gc } = globalThis
if (gc !== undefined) {
  const heaps: string[] = []
  for (let episodes = 0; episodes <= 10_000; episodes += 10 * GROUP) {
    await play(10, 8)
    if (episodes % 2_000 < 10 * GROUP) {
      await setTimeout(20)
      gc()
      heaps.push(`${episodes}: ${(process.memoryUsage().heapUsed / 1e6).toFixed(1)} MB`)
    }
  }
  console.log(`heap after episodes ${heaps.join(', ')}`)
}
