/** What bundle and rollout promise together: an episode of a bundle as it is really played. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { bundleDataset, type TaskInput } from '@tiltyard/bundle'
import { promptIds, type Limits } from '@tiltyard/core'
import { createSlots, playGroup } from '@tiltyard/rollout'
import { charRenderer, charText, scriptedSampler } from '@tiltyard/testkit'
import { afterAll, expect, test } from 'vitest'

const folders: string[] = []
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true })
})

const moduleText = `
const take = {
  name: 'take',
  description: 'Takes one of a good.',
  parameters: { type: 'object', properties: { good: { type: 'string' } }, required: ['good'] },
  run({ good }, { universe }) {
    universe.update((draft) => { draft.stock[good] -= 1 })
    return String(universe.state.stock[good]) + ' left'
  },
}
const explode = {
  name: 'explode',
  description: 'Fails.',
  fatal: true,
  parameters: { type: 'object' },
  run() { throw new Error('the machine is gone') },
}
export const bundle = { tools: [take, explode] }
`

async function store(tasks: readonly TaskInput[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tiltyard-store-'))
  folders.push(folder)
  const manifest = {
    formatVersion: 1,
    name: 'store',
    module: 'bundle.mjs',
    tasks: ['tasks.jsonl'],
    universe: { kind: 'json', base: 'universe.json' },
    steps: [{ name: 'stock', use: 'universeEqualsGold' }],
  }
  await writeFile(join(folder, 'bundle.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'bundle.mjs'), moduleText)
  await writeFile(join(folder, 'universe.json'), '{"stock":{"pen":9}}')
  await writeFile(
    join(folder, 'tasks.jsonl'),
    tasks.map((task) => `${JSON.stringify(task)}\n`).join(''),
  )
  return folder
}

const buy: TaskInput = {
  id: 'buy',
  turns: [{ prompt: 'Take a pen.', system: { text: 'You keep a store.' } }],
  gold: { calls: [{ name: 'take', arguments: { good: 'pen' } }] },
}

/** Plays a group of the first task with these replies. */
async function play(
  tasks: readonly TaskInput[],
  script: Parameters<typeof scriptedSampler>[0],
  {
    size = 1,
    slots = size,
    limits = {},
    retries = 0,
  }: { size?: number; slots?: number; limits?: Limits; retries?: number } = {},
) {
  const { train, source } = await bundleDataset(await store(tasks), {
    train: 'all',
    groupSize: size,
    groupsPerBatch: 1,
    order: 'listed',
  })
  const sampler = scriptedSampler(script)
  const lanes = createSlots(slots)
  const [plan] = (await train.batch(0, 1)) ?? []
  const group = await playGroup(
    plan!,
    { split: 'train', step: 0, group: 0 },
    {
      policy: { sampler, renderer: charRenderer(), sampling: {} },
      slots: lanes,
      seed: 1,
      limits,
      failures: { kind: 'retry', retries },
    },
  )
  await source.close()
  return { group, sampler, slots: lanes }
}

const texts = (ids: ArrayLike<number>) => charText(Array.from(ids))

test('the gold of a task, said by a policy, earns the full reward', async () => {
  const { group } = await play([buy], ['⟦take {"good": "pen"}⟧', 'Here.'])
  const [episode] = group.episodes
  expect(episode).toMatchObject({ end: { kind: 'completed' }, reward: { reward: 1 } })
  expect(episode?.outcome).toMatchObject({ scores: { stock: { value: 1 } } })
  expect(episode?.outcome?.metrics).toMatchObject({ tool_calls: 1, tool_errors: 0, cut: 0 })
})

test('E2: 16 members that are all cut at their first reply end with 16 rewards, 8 at a time', async () => {
  const { group, slots } = await play([buy], ['I will think about it for long.'], {
    size: 16,
    slots: 8,
    limits: { replyTokens: 5 },
  })
  expect(group.episodes).toHaveLength(16)
  for (const episode of group.episodes)
    expect(episode).toMatchObject({
      end: { kind: 'cut', by: 'reply_tokens' },
      reward: { reward: 0 },
    })
  expect(slots.peak).toBe(8)
  expect(slots.inUse).toBe(0)
})

test('E12, E14: a later turn’s prompt begins with its own system prompt and holds nothing of the first; the split is counted', async () => {
  const turns = [
    { prompt: 'First question.', system: { text: 'Be brief.' } },
    { prompt: 'Second question.', system: { text: 'Be long-winded.' } },
  ]
  const { group, sampler } = await play([{ ...buy, turns }], ['Yes.', 'Yes, indeed.'])
  const prompts = sampler.requests.map(({ prompt }) => texts(promptIds(prompt)))
  expect(prompts[0]).toContain('⟨system⟩Be brief.')
  expect(prompts[1]).toContain('⟨system⟩Be long-winded.')
  expect(prompts[1]).not.toContain('Be brief.')
  expect(prompts[1]).toContain('First question.')
  expect(group.episodes[0]?.outcome?.metrics).toMatchObject({ splits: 1, turns: 2 })
})

test('E7, F23: a fatal tool error leaves no episode, no reward and no outcome; the failure names task and tool', async () => {
  const { group } = await play([buy], ['⟦explode {}⟧'])
  expect(group.episodes).toEqual([])
  expect(group.dropped).toBeDefined()
  expect(String(group.failures[0]?.error.message)).toContain('tool "explode"')
})

test('E8: an episode that failed is played again as a new attempt, in a fresh store', async () => {
  const script = ['⟦take {"good": "pen"}⟧', '⟦explode {}⟧', '⟦take {"good": "pen"}⟧', 'Here.']
  const { group, sampler } = await play([buy], script, { retries: 1 })
  const key = { split: 'train', step: 0, group: 0, member: 0 }
  expect(group.failures).toMatchObject([{ key: { ...key, attempt: 0 }, phase: 'tool' }])
  expect(group.episodes).toMatchObject([{ key: { ...key, attempt: 1 }, reward: { reward: 1 } }])
  const shown = sampler.requests.map(({ prompt }) => texts(promptIds(prompt)))
  expect(shown[1]).toContain('8 left')
  expect(shown[2]).not.toContain('left')
  expect(shown[3]).toContain('8 left')
})

test('F25: the members of a group each have a store of their own', async () => {
  const { group } = await play(
    [buy],
    ({ text }) => (text.includes('left') ? 'Done.' : '⟦take {"good": "pen"}⟧'),
    { size: 6 },
  )
  expect(group.episodes.map(({ reward }) => reward)).toEqual(
    Array.from({ length: 6 }, () => ({ reward: 1 })),
  )
})
