/** Calls in an XML layout, as a model samples them, on their way to a bundle's tools and back. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { bundleDataset } from '@tiltyard/bundle'
import { concatIds, promptIds } from '@tiltyard/core'
import { encodeSegments, splitAtMarkers } from '@tiltyard/core/rendering'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { createSlots, playGroup } from '@tiltyard/rollout'
import { scriptedSampler } from '@tiltyard/testkit'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { afterAll, expect, test } from 'vitest'

const folder = await mkdtemp(join(tmpdir(), 'tiltyard-arguments-'))
afterAll(() => rm(folder, { recursive: true }))

const tokenizer = await loadTokenizer(deskTokenizerFile)

/** Ids of a reply whose markers are markers. */
const sampled = (reply: string) =>
  concatIds(
    encodeSegments(tokenizer, splitAtMarkers(tokenizer, reply)).flatMap((chunk) =>
      chunk.type === 'tokens' ? [chunk.ids] : [],
    ),
  )

const call = (name: string, values: Readonly<Record<string, string>>) => {
  const parameters = Object.entries(values).map(
    ([parameter, value]) => `<parameter=${parameter}>\n${value}\n</parameter>\n`,
  )
  return `<tool_call>\n<function=${name}>\n${parameters.join('')}</function>\n</tool_call>`
}

const files = {
  'bundle.json': {
    formatVersion: 1,
    name: 'find',
    module: 'bundle.mjs',
    tasks: ['tasks.jsonl'],
    steps: [{ name: 'answered', use: 'replyContains' }],
  },
  'tasks.jsonl': { id: 'one', turns: [{ prompt: 'Find it.' }], expect: { reply: ['Found'] } },
  'bundle.mjs': `
const text = { type: 'string' }
const maybe = { anyOf: [text, { type: 'null' }] }
const find = {
  name: 'find',
  description: 'Finds.',
  parameters: {
    type: 'object',
    properties: {
      zip: text,
      flag: { type: ['string', 'null'] },
      note: maybe,
      none: maybe,
      count: { type: 'integer' },
      list: { type: 'array', items: { type: 'integer' } },
    },
    required: ['zip'],
  },
  run: (args) => args,
}
export const bundle = { tools: [find] }
`,
}

async function writeBundle() {
  for (const [name, content] of Object.entries(files))
    await writeFile(
      join(folder, name),
      typeof content === 'string' ? content : JSON.stringify(content),
    )
  return folder
}

test('E18, E20, E21: arguments arrive with the types of the schema, and each call is answered in its place', async () => {
  const values = {
    zip: '19122',
    flag: 'true',
    note: '0012',
    none: 'null',
    count: '3',
    list: '[1, 2]',
  }
  const replies = [
    `${call('find', values)}\n${call('find', { note: '1' })}\n${call('fnd', { zip: '1' })}<|im_end|>`,
    'Found.<|im_end|>',
  ]
  const { train, source } = await bundleDataset(await writeBundle(), {
    train: 'all',
    groupSize: 1,
    groupsPerBatch: 1,
  })
  const sampler = scriptedSampler(replies.map((reply) => ({ ids: sampled(reply) })))
  const [plan] = (await train.batch(0, 1)) ?? []
  const group = await playGroup(
    plan!,
    { split: 'train', step: 0, group: 0 },
    {
      seed: 1,
      policy: {
        sampler,
        renderer: qwenRenderer({ layout: 'qwen3_coder', tokenizer }),
        sampling: {},
      },
      slots: createSlots(1),
    },
  )
  await source.close()
  const shown = tokenizer.decode(promptIds(sampler.requests[1]!.prompt))
  const answers = shown.matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)
  expect(Array.from(answers, ([, answer]) => answer)).toEqual([
    '{"zip":"19122","flag":"true","note":"0012","none":null,"count":3,"list":[1,2]}',
    "error: must have required property 'zip'",
    'error: unknown tool "fnd"; did you mean "find"?',
  ])
  expect(group.episodes[0]).toMatchObject({
    end: { kind: 'completed' },
    reward: { reward: 1 },
    metrics: { tool_calls: 3, tool_errors: 2, turns: 1, splits: 0 },
  })
})
