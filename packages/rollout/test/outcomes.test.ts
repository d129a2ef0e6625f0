import { readFileSync } from 'node:fs'

import { cutReasons, endName, isRewarded, type EndReason } from '@tiltyard/core'
import {
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
  type ScriptedEnvOptions,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { playGroup, rolloutMetrics, type PlayedGroup } from '../src/index.ts'
import { answerOf, groupKey, promptOf, rollout, type TestRollout } from './support/play.ts'

/** The table of outcomes in the README, held to the code: it has every end there is, and each row is played. */

interface Row {
  readonly outcome: string
  readonly scored: boolean
  readonly trains: boolean
  readonly again: boolean
  readonly counted: readonly string[]
}

const rows = tableOf(readFileSync(new URL('../README.md', import.meta.url), 'utf8'))

interface Way {
  readonly env?: ScriptedEnvOptions
  readonly options?: TestRollout
}

const clock = simulatedClock()
const failing = { step: () => Promise.reject(new Error('broke')) }
const call = '⟦look {}⟧'
const ways: Readonly<Record<string, Way>> = {
  completed: {},
  reply_tokens: { options: { replies: ['too long'], limits: { replyTokens: 3 } } },
  episode_tokens: {
    env: { observation: promptOf(60) },
    options: { limits: { episodeTokens: 50 } },
  },
  sampled_tokens: { options: { replies: [call], limits: { sampledTokens: 11 } } },
  context_window: {
    env: { step: answerOf(100) },
    options: { replies: [call], limits: { contextWindow: 90 } },
  },
  turns: {
    env: { step: () => ({ done: false, messages: [{ role: 'user', content: 'on' }], turn: {} }) },
    options: { limits: { turns: 1 } },
  },
  replies: { options: { replies: [call], limits: { replies: 2 } } },
  tool_calls: { options: { replies: [call], limits: { toolCalls: 1 } } },
  episode_time: {
    options: {
      clock,
      sampler: slowSampler(scriptedSampler(['done']), { milliseconds: 5_000, clock }),
      limits: { episodeMs: 1_000 },
    },
  },
  malformed_reply: { options: { replies: ['⟦⟧'] } },
  failed: { env: failing, options: { failures: { kind: 'minGroup', atLeast: 1, retries: 1 } } },
  unscored: { env: { score: () => Promise.reject(new Error('no scorer')) } },
  dropped: { env: failing, options: { failures: { kind: 'minGroup' } } },
  cancelled: {},
}

/** Plays one episode that way; a cancelled one gives no group. */
async function played(outcome: string) {
  const { env = {}, options = {} } = ways[outcome]!
  const controller = new AbortController()
  const step = () => {
    controller.abort(new Error('enough'))
    return { done: true } as const
  }
  const plan = scriptedPlan(1, () => scriptedEnv(outcome === 'cancelled' ? { step } : env))
  const run = rollout({ ...options, signal: controller.signal })
  const playing = playGroup(plan, groupKey, run).catch(() => undefined)
  const group: PlayedGroup | undefined = await run.clock.drive(playing)
  return { group, opened: plan.source.opened }
}

describe('F78: the table of outcomes', () => {
  test('has every end there is, once', () => {
    const failed: EndReason = { kind: 'failed', phase: 'tool', error: { name: '', message: '' } }
    const ends: readonly EndReason[] = [
      { kind: 'completed' },
      ...cutReasons.map((by) => ({ kind: 'cut', by }) as const),
      failed,
      { kind: 'cancelled' },
    ]
    const names = [...ends.map(endName), 'unscored', 'dropped']
    expect(rows.map(({ outcome }) => outcome).toSorted()).toEqual(names.toSorted())
  })

  test.each(rows)('tells what becomes of $outcome', async (row) => {
    const { group, opened } = await played(row.outcome)
    const episodes = group?.episodes ?? []
    const metrics = rolloutMetrics(group === undefined ? [] : [group])
    expect({
      outcome: row.outcome,
      scored: episodes.some(({ outcome }) => outcome !== undefined),
      trains: episodes.some(({ reward }) => isRewarded(reward)),
      again: opened.length > 1,
      counted: row.counted.filter((name) => (metrics[name] ?? 0) > 0),
    }).toEqual(row)
    expect(Object.keys(metrics).length > 0).toBe(row.counted.length > 0)
  })

  test.each(rows.filter(({ scored }) => scored))('plays $outcome to that end', async (row) => {
    const { group } = await played(row.outcome)
    expect(group?.episodes.map(({ end }) => endName(end))).toEqual([row.outcome])
  })
})

function tableOf(markdown: string): readonly Row[] {
  const [, after = ''] = markdown.split('<!-- outcomes')
  const lines = after.split('\n').filter((line) => line.startsWith('| `'))
  const end = lines.findIndex((line) => line.startsWith('| `cancelled`'))
  return lines.slice(0, end + 1).map((line) => {
    const [outcome = '', scored, trains, again, counted = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    return {
      outcome: outcome.replaceAll('`', ''),
      scored: scored === 'yes',
      trains: trains === 'yes',
      again: again === 'yes',
      counted: [...counted.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
    }
  })
}
