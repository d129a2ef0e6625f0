/**
 * What it costs to turn played episodes into data: 16 million tokens in episodes of eight replies, whose prompts extend each
 * other. Time, and the memory that assembling takes beyond what the episodes hold, against the size of the data.
 *
 *   node --expose-gc --import tsx test/bench/assembly.ts [--tokens 16000000]
 */
import { parseArgs } from 'node:util'

import { createPrompt, tokenChunk, type PlayedReply, type RenderedPrompt } from '@tiltyard/core'
import { assembleEpisode } from '@tiltyard/train'

const REPLIES = 8
const PROMPT = 300
const REPLY = 100
const RESULT = 200
const PER_EPISODE = PROMPT + REPLIES * REPLY + (REPLIES - 1) * RESULT

const { values } = parseArgs({ options: { tokens: { type: 'string', default: '16000000' } } })
const count = Math.round(Number(values.tokens) / PER_EPISODE)

function playedReplies(): readonly PlayedReply[] {
  const replies: PlayedReply[] = []
  let prompt: RenderedPrompt = createPrompt([tokenChunk(new Int32Array(PROMPT).fill(1))])
  for (let index = 0; index < REPLIES; index += 1) {
    const ids = new Int32Array(REPLY).fill(2)
    replies.push({
      prompt,
      sample: { ids, logprobs: new Float32Array(REPLY).fill(-1), stop: 'stop' },
      version: { id: 'v', step: 0 },
      sampling: {},
      message: { role: 'assistant', content: '' },
      termination: 'stop',
      malformed: [],
      trained: true,
      ms: 1,
    })
    prompt = createPrompt([tokenChunk(ids), tokenChunk(new Int32Array(RESULT).fill(3))], prompt)
  }
  return replies
}

const bytes = () => {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
const mib = (value: number) => `${(value / 2 ** 20).toFixed(0)} MiB`

const episodes = Array.from({ length: count }, playedReplies)
globalThis.gc?.()
const before = bytes()
let peak = before
const start = performance.now()
const data = episodes.map((replies, index) => {
  const assembled = assembleEpisode({ replies }, 0.5)
  if (index % 64 === 0) peak = Math.max(peak, bytes())
  return assembled
})
const ms = performance.now() - start
peak = Math.max(peak, bytes())
globalThis.gc?.()
const kept = bytes() - before

let positions = 0
let size = 0
for (const { datum, mask } of data.flat()) {
  positions += mask.length
  // Input and targets are views of one array.
  size += 4 * (mask.length + 1) + 3 * 4 * mask.length
  if (datum.targets.length !== mask.length) throw new Error('the arrays differ in length')
}
console.log(`${count} episodes, ${(positions / 1e6).toFixed(1)} M positions, data of ${mib(size)}`)
console.log(`assembled in ${ms.toFixed(0)} ms: ${(positions / ms / 1e3).toFixed(1)} M positions/s`)
console.log(
  `peak ${mib(peak - before)} (${((peak - before) / size).toFixed(2)} × the data), kept ${mib(kept)} (${(kept / size).toFixed(2)} ×)`,
)
