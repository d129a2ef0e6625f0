/** Field reports about tokens, played on a real layout and a real vocabulary: from the sampled ids to the data that train. */
import { concatIds, promptIds, type Step } from '@tiltyard/core'
import { encodeSegments, splitAtMarkers } from '@tiltyard/core/rendering'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { createSlots, playGroup, type PlayedEpisode } from '@tiltyard/rollout'
import { scriptedEnv, scriptedPlan, scriptedSampler } from '@tiltyard/testkit'
import { loadTokenizer } from '@tiltyard/tokenizer'
import { assembleEpisode, type PolicyDatum } from '@tiltyard/train'
import { beforeAll, expect, test } from 'vitest'

import { vocabulary } from '../../support/vocabularies.ts'

const tokenizer = await loadTokenizer(vocabulary('qwen3').found!)
const marker = (text: string) => tokenizer.markers.get(text)!
const end = marker('<|im_end|>')

/** Ids of a text whose markers are markers. */
function idsOf(text: string): Int32Array {
  return concatIds(
    encodeSegments(tokenizer, splitAtMarkers(tokenizer, text)).flatMap((chunk) =>
      chunk.type === 'tokens' ? [chunk.ids] : [],
    ),
  )
}

const thinking = (about: string) => `<think>\n${`${about}, perhaps. `.repeat(20)}\n</think>\n\n`
const found = 'ORDER 7731 shipped to Northgate'

/** The town in two pieces that the vocabulary has a piece of its own for. */
const town = [' Nor', 'thgate'].map((text) => tokenizer.encode(text))
const replies = [
  idsOf(
    `${thinking('I should look')}<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call><|im_end|>`,
  ),
  concatIds([
    idsOf(`${thinking('It is there')}To`),
    ...town,
    Int32Array.of(marker('<|endoftext|>')),
    idsOf(', on Monday.<|im_end|>'),
  ]),
  // Cut: no stop token.
  idsOf(`${thinking('They thank me')}You are`),
]

const steps: readonly Step[] = [
  { done: false, messages: [{ role: 'tool', toolCallId: 'call_0', content: found }] },
  { done: false, messages: [{ role: 'user', content: 'Thanks!' }], turn: {} },
]

let episode: PlayedEpisode
let data: readonly PolicyDatum[]
beforeAll(async () => {
  const plan = scriptedPlan(1, () =>
    scriptedEnv({
      observation: {
        messages: [{ role: 'user', content: 'Where is my order?' }],
        tools: [{ name: 'find', parameters: { type: 'object', properties: {} } }],
      },
      step: (_, __, index) => steps[index]!,
    }),
  )
  const sampler = scriptedSampler(({ index }) => ({
    ids: replies[index]!,
    stop: index === 2 ? 'length' : 'stop',
  }))
  const group = await playGroup(
    plan,
    { split: 'train', step: 0, group: 0 },
    {
      seed: 1,
      policy: { sampler, renderer: qwenRenderer({ layout: 'qwen3', tokenizer }), sampling: {} },
      slots: createSlots(1),
    },
  )
  episode = group.episodes[0]!
  data = assembleEpisode(episode, 1)
})

const lengths = ({ datum, mask, logprobs, advantages }: PolicyDatum) =>
  new Set([
    datum.input.reduce((sum, chunk) => sum + (chunk.type === 'tokens' ? chunk.ids.length : 0), 0),
    datum.targets.length,
    mask.length,
    logprobs.length,
    advantages.length,
  ])

/** Where the ids stand in a datum's targets. */
function placesOf(ids: Int32Array, { datum: { targets } }: PolicyDatum): readonly number[] {
  return Array.from(targets, (_, at) => at).filter((at) =>
    ids.every((id, offset) => targets[at + offset] === id),
  )
}

test('F1, F8: within a turn the next prompt is the prompt, the sampled ids and the observation, though encoding would give other ids', () => {
  expect(tokenizer.encode(' Northgate').length).toBeLessThan(town[0]!.length + town[1]!.length)
  const [first, second] = episode.replies
  const before = [...promptIds(first!.prompt), ...replies[0]!]
  expect([...promptIds(second!.prompt)].slice(0, before.length)).toEqual(before)
  const rest = promptIds(second!.prompt).slice(before.length)
  expect(tokenizer.decode(rest)).toContain(`<tool_response>\n${found}\n</tool_response>`)
  expect(second!.sample.ids).toEqual(replies[1])
  expect(episode.metrics['splits']).toBe(1)
})

test('F4: each sampled token is trained once, its reasoning too, whatever later prompts hold of it', () => {
  const sampled = replies.map((ids) => [...ids]).flat()
  const trained = data.flatMap(({ datum, mask }) =>
    [...datum.targets].filter((_, at) => mask[at] === 1),
  )
  expect(trained).toEqual(sampled)
  expect(data).toHaveLength(2)
})

test('F3: where thinking left the history, the tool’s result is there whole, once, and masked', () => {
  expect(replies.every((ids) => ids.length > 40)).toBe(true)
  const ids = tokenizer.encode(found)
  for (const datum of data) {
    const [place, ...others] = placesOf(ids, datum)
    expect(others).toEqual([])
    expect(place).toBeGreaterThan(0)
    expect(datum.mask.slice(place, place! + ids.length)).toEqual(new Float32Array(ids.length))
  }
  const second = tokenizer.decode(data[1]!.datum.targets)
  expect(second).not.toContain('I should look')
  expect(second).not.toContain('It is there')
  expect(second).toContain('They thank me')
})

test('F5: the sampled end token is trained; the header before a reply and the newline after it are not', () => {
  const [{ datum, mask }] = data as [PolicyDatum, PolicyDatum]
  const ends = Array.from(datum.targets, (_, at) => at).filter((at) => datum.targets[at] === end)
  // Of the system’s, the user’s, two sampled and the tool’s message.
  expect(ends.map((at) => mask[at])).toEqual([0, 0, 1, 0, 1])
  const header = idsOf('<|im_start|>assistant\n')
  for (const at of placesOf(header, data[0]!))
    expect(mask.slice(at, at + header.length)).toEqual(new Float32Array(3))
  expect([datum.targets[ends[2]! + 1], mask[ends[2]! + 1]]).toEqual([...idsOf('\n'), 0])
})

test('F2: with a history that became shorter and a reply that was cut all lists of a datum have one length', () => {
  const [, second, third] = episode.replies
  expect(third!.prompt.length).toBeLessThan(second!.prompt.length + replies[1]!.length)
  expect(episode.end).toEqual({ kind: 'cut', by: 'context_window' })
  for (const datum of data) expect(lengths(datum).size).toBe(1)
  expect(data[1]!.datum.targets.at(-1)).toBe(replies[2]!.at(-1))
})
