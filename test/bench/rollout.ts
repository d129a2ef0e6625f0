/**
 * What rollout itself costs: groups of 16 episodes with 8 replies of about 30 tokens and tool results of about 500, over a sampler
 * that answers at once. Rollouts per second of processor time, which other work on the machine disturbs less; cost per turn at 8,
 * 32 and 128 turns; the heap over 10,000 episodes. The renderer has its tokens ready, or is Qwen's with `--qwen`.
 *
 *   node --expose-gc --import tsx test/bench/rollout.ts [--groups 20] [--qwen] [--record]
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
import { splitAtMarkers } from '@tiltyard/core/rendering'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { createSlots, playBatch, type RolloutOptions } from '@tiltyard/rollout'
import { loadTokenizer } from '@tiltyard/tokenizer'

import { vocabulary } from '../support/vocabularies.ts'

const GROUP = 16

const { values } = parseArgs({
  options: {
    groups: { type: 'string', default: '20' },
    qwen: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
  },
})

const STOP = 1

interface Subject {
  readonly renderer: Renderer
  readonly reply: Int32Array
}

const { renderer, reply } = values.qwen ? await qwen() : ready()
const sample = {
  ids: reply,
  logprobs: new Float32Array(reply.length).fill(-1),
  stop: 'stop',
} as const

/** Tool results of about 500 tokens, by turn; made before anything is measured, as they are no work of rollout's. */
const results = Array.from({ length: 129 }, (_, turn) => {
  const lines = Array.from({ length: 62 }, (__, line) => turn + line)
  return lines.map((line) => `item ${line} costs ${(line * 3) % 97}`).join(' ')
})

/** Replies of 32 tokens and messages of 500, which are there already. */
function ready(): Subject {
  const ids = new Int32Array(32).fill(7)
  ids[ids.length - 1] = STOP
  const message: AssistantMessage = {
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'call', name: 'look', arguments: {} }],
  }
  const parsed: ParsedReply = { message, termination: 'stop', malformed: [], spans: [] }
  const shown = { type: 'tokens', ids: new Int32Array(500).fill(9) } as const
  return {
    reply: ids,
    renderer: {
      specVersion: 'renderer/1',
      name: 'ready',
      fingerprint: 'ready',
      history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
      capabilities: { tools: true, images: false, reasoning: false },
      stop: { tokens: [STOP], strings: [] },
      prompt: () => createPrompt([shown]),
      extend: (prompt, { ids: sampled }) =>
        createPrompt([{ type: 'tokens', ids: sampled }, shown], prompt),
      parse: () => parsed,
      stream: () => ({ push: () => [], end: () => ({ deltas: [], reply: parsed }) }),
      supervised: () => [],
    },
  }
}

async function qwen(): Promise<Subject> {
  const { found = '' } = vocabulary('qwen3')
  const tokenizer = await loadTokenizer(found)
  const text =
    'Let me see.\n<tool_call>\n{"name": "find_order", "arguments": {"order": "W123"}}\n</tool_call><|im_end|>'
  const ids = splitAtMarkers(tokenizer, text).flatMap((part) =>
    typeof part === 'string' ? [...tokenizer.encode(part)] : 'id' in part ? [part.id] : [],
  )
  return {
    reply: Int32Array.from(ids),
    renderer: qwenRenderer({ tokenizer, layout: 'qwen3_instruct_2507' }),
  }
}

const sampler: Sampler = {
  specVersion: 'sampler/1',
  version: { id: 'bench', step: 0 },
  contextWindow: 10_000_000,
  sample: async () => [sample],
  logprobs: async () => new Float32Array(),
  async close() {},
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
    start: async () => ({ messages: [{ role: 'user', content: results[0]! }] }),
    async step({ toolCalls = [] }) {
      steps += 1
      if (steps === turns) return { done: true }
      const content = results[steps]!
      return {
        done: false,
        messages: toolCalls.map(({ id }) => ({ role: 'tool', toolCallId: id, content })),
      }
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
await play(60, 8)
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
