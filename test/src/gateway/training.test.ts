import type { Backend, Datum, EpisodeSummary, RunIndex } from '@tiltyard/core'
import { agentSource, createGateway, type AgentContext, type AgentTask } from '@tiltyard/gateway'
import { bigramBackend, memoryRunIndex, stepReward } from '@tiltyard/testkit'
import {
  defineTraining,
  listDataset,
  train,
  type PlannedTask,
  type RunControl,
  type StepReport,
  type TrainingConfig,
} from '@tiltyard/train'
import { expect, test } from 'vitest'

import { LETTERS, lettersRenderer } from './letters.ts'

type Player = (task: AgentTask, context: AgentContext) => Promise<number | void>

/** Asks, going on from what was said before; gives the reply. */
async function ask({ model }: AgentContext, messages: readonly object[]): Promise<string> {
  const response = await model.fetch(`${model.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${model.apiKey}` },
    body: JSON.stringify({ model: model.name, messages }),
  })
  const { choices } = (await response.json()) as {
    choices: readonly { message: { content: string } }[]
  }
  return choices[0]!.message.content
}
const user = (content: string) => ({ role: 'user', content })

const vowels = (said: string) => said.replaceAll(/[^aeiou]/g, '').length

/** Where runs lie: what outlives a process. */
interface Place {
  readonly backend: Backend
  readonly index: RunIndex
}

function newPlace(): Place {
  return {
    backend: bigramBackend({ vocabularySize: LETTERS, contextWindow: 400 }),
    index: memoryRunIndex(),
  }
}

/** Trains an agent with a policy in memory: groups of four, two in a step. */
async function trainThere(
  { backend, index }: Place,
  player: Player,
  more: Partial<TrainingConfig> = {},
  control: RunControl = {},
) {
  const gateway = createGateway()
  const source = agentSource({
    gateway,
    agent: player,
    tasks: ['one', 'two', 'three', 'four'].map((id) => ({ id })),
  })
  const tasks: PlannedTask[] = []
  for await (const task of source.tasks('all'))
    tasks.push({ source, task, size: 4, reward: stepReward('reward') })
  const training = defineTraining({
    run: 'agent',
    index,
    backend,
    model: 'bigram',
    adaptation: 'full',
    renderer: lettersRenderer(),
    dataset: listDataset({ name: 'words', tasks, groupsPerBatch: 2, epochs: 4 }),
    evaluations: [
      { name: 'held', dataset: listDataset({ name: 'h', tasks, groupsPerBatch: 4, epochs: 1 }) },
    ],
    evalEvery: 2,
    steps: 4,
    limits: { replyTokens: 6 },
    optimizer: { learningRate: 0.1 },
    checkpoints: { every: 0, rolling: 1 },
    ...more,
  })
  const reports: StepReport[] = []
  const run = train(training, control)
  for await (const report of run) reports.push(report)
  return { reports, result: await run.finish() }
}

/** Two questions in one conversation. */
const conversing: Player = async ({ id }, context) => {
  const messages = [user(id)]
  const first = await ask(context, messages)
  const more = [...messages, { role: 'assistant', content: first }, user('again')]
  return vowels(first) + vowels(await ask(context, more))
}

async function episodesOf({ index }: Place): Promise<readonly EpisodeSummary[]> {
  const episodes: EpisodeSummary[] = []
  for await (const episode of index.episodes('agent')) episodes.push(episode)
  return episodes
}

async function metricsOf({ index }: Place): Promise<object> {
  const { metrics } = await index.run('agent')
  return metrics.map(({ split, step, values }) => ({ split, step, values }))
}

const keyOf = ({ key }: EpisodeSummary) => JSON.stringify(key)

test('§18.98 groups are filed under the step at which they are played, those of evaluations too', async () => {
  const place = newPlace()
  await trainThere(place, conversing)
  const filed = new Map<string, number>()
  for await (const { key } of place.index.groups('agent')) {
    const name = `${key.split}/step-${key.step}`
    filed.set(name, (filed.get(name) ?? 0) + 1)
  }
  expect(Object.fromEntries(filed)).toEqual({
    'eval/step-0': 4,
    'eval/step-2': 4,
    'eval/step-4': 4,
    'train/step-0': 2,
    'train/step-1': 2,
    'train/step-2': 2,
    'train/step-3': 2,
  })
})

test('§18.101 §18.87 wherever a run is killed, going on trains every rollout once and comes to the same numbers', async () => {
  const whole = newPlace()
  let events = 0
  await trainThere(whole, conversing, {}, { observer: () => void (events += 1) })
  const trained = (await episodesOf(whole)).filter((episode) => episode.trained === true)
  expect(events).toBeGreaterThan(40)
  for (let share = 1; share <= 6; share += 1) {
    const place = newPlace()
    const killed = new AbortController()
    let seen = 0
    const observer = () => {
      seen += 1
      if (seen === Math.floor((events * share) / 7)) killed.abort(new Error('killed'))
    }
    await expect(
      trainThere(place, conversing, {}, { observer, signal: killed.signal }),
    ).rejects.toThrow('killed')
    await trainThere(place, conversing, {}, { start: 'either', takeOver: true })
    expect(await metricsOf(place)).toEqual(await metricsOf(whole))
    const again = (await episodesOf(place)).filter((episode) => episode.trained === true)
    expect(again.map(keyOf).toSorted()).toEqual(trained.map(keyOf).toSorted())
  }
})

test('§18.92 a version that can’t be made ends the run, which goes on later as if nothing had been', async () => {
  const whole = newPlace()
  await trainThere(whole, conversing)
  const place = newPlace()
  let versions = 0
  const breaking: Backend = {
    ...place.backend,
    async learner(options) {
      const learner = await place.backend.learner(options)
      return {
        ...learner,
        async publish(publishing) {
          versions += 1
          if (versions === 3) throw new Error('no room for more weights')
          return learner.publish(publishing)
        },
      }
    },
  }
  await expect(trainThere({ ...place, backend: breaking }, conversing)).rejects.toThrow('no room')
  await trainThere(place, conversing, {}, { start: 'resume', takeOver: true })
  expect(await metricsOf(place)).toEqual(await metricsOf(whole))
})

test('§18.66 an episode in five rows weighs as much as one in one row', async () => {
  const sent: Datum[] = []
  const place = newPlace()
  const watched: Backend = {
    ...place.backend,
    async learner(options) {
      const learner = await place.backend.learner(options)
      return {
        ...learner,
        forwardBackward(data, loss) {
          sent.push(...data)
          return learner.forwardBackward(data, loss)
        },
      }
    },
  }
  let plays = 0
  await trainThere(
    { ...place, backend: watched },
    async (_, context) => {
      plays += 1
      const isFirst = plays % 4 === 1
      for (const word of ['a', 'b', 'c', 'd', 'e']) {
        await ask(context, [user(word)])
        if (!isFirst) return 0
      }
      return 1
    },
    { steps: 1, evaluations: [], advantages: { length: 'mean' }, rollout: { slots: 1 } },
  )
  const rows = sent.map(({ advantages }) => advantages!.reduce((sum, value) => sum + value, 0))
  const better = rows.filter((sum) => sum > 0)
  const worse = rows.filter((sum) => sum < 0)
  // Two groups, each with one episode of reward 1 in five rows and three of reward 0 in one row.
  expect(better).toHaveLength(10)
  expect(worse).toHaveLength(6)
  const total = (part: readonly number[]) => part.reduce((sum, value) => sum + value, 0)
  expect(total(better)).toBeCloseTo(2 * 0.75, 5)
  for (const sum of worse) expect(sum).toBeCloseTo(-0.25, 5)
})

test('§18.85 a group with one scored rollout trains nothing; a step without any is skipped, said and counted', async () => {
  const place = newPlace()
  let plays = 0
  const { reports } = await trainThere(
    place,
    async (_, context) => {
      await ask(context, [user('go')])
      plays += 1
      const isScored = plays % 4 === 1
      context.reward(isScored ? { value: 1 } : { value: null, reason: 'nobody can tell' })
    },
    { steps: 2, evaluations: [], rollout: { slots: 1 } },
  )
  for (const { updates, warnings } of reports) {
    expect(updates).toBe(0)
    expect(warnings.map(({ code }) => code)).toContain('skipped_step')
  }
  const reasons = (await episodesOf(place)).map(({ trained }) => trained)
  expect(reasons).toEqual(Array.from({ length: 16 }, () => 'alone'))
})

test('§18.94 however far training runs ahead, each rollout has one version, and none lags more than it may', async () => {
  const place = newPlace()
  await trainThere(place, conversing, {
    evaluations: [],
    steps: 6,
    pipeline: { maxStaleness: 2 },
  })
  const episodes = await episodesOf(place)
  expect(episodes).toHaveLength(48)
  for (const { key } of episodes) {
    const { episode } = await place.index.episode('agent', key)
    const versions = new Set(episode!.replies.map(({ version }) => version.step))
    expect(versions.size).toBe(1)
    const [version] = versions
    expect(key.step - version!).toBeGreaterThanOrEqual(0)
    expect(key.step - version!).toBeLessThanOrEqual(2)
  }
})
