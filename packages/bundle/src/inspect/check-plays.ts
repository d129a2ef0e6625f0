import {
  isRewarded,
  type JsonValue,
  type PlayedCall,
  type Reward,
  type RewardRule,
} from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import type { PlayOptions } from '../play/env.ts'
import { goldPlayer } from '../play/gold-player.ts'
import { playGold } from '../play/gold.ts'
import { playTask } from '../play/play-task.ts'
import type { Task } from '../task.ts'
import { sameJson } from '../universe/compare.ts'
import { authorFailure } from './failure.ts'
import type { Finding, FindingKind } from './report.ts'

/** In how many orders the writes of a gold are tried. */
export const MAX_GOLD_ORDERS = 6

export interface PlayChecks {
  readonly bundle: Bundle
  readonly reward: RewardRule | undefined
  readonly fullReward: number
  readonly play: PlayOptions
  readonly signal: AbortSignal
}

/** What a replay of gold left behind. */
export interface GoldTrace {
  readonly results: readonly string[]
  readonly state: JsonValue
}

/** Plays a task with nothing, and with its gold. */
export async function playFindings(checks: PlayChecks, task: Task): Promise<readonly Finding[]> {
  const { fullReward } = checks
  const idle = await played(checks, task, { ...task, gold: undefined })
  const findings = [...idle.findings]
  if (idle.reward !== undefined && isRewarded(idle.reward) && idle.reward.reward >= fullReward)
    findings.push(finding(checks, task, 'no-op', `doing nothing earns ${idle.reward.reward}`))
  if (task.gold === undefined) return findings
  const gold = await played(checks, task, task)
  findings.push(...gold.findings)
  for (const { name, error } of gold.calls)
    if (error !== undefined)
      findings.push(
        finding(checks, task, 'gold-call-fails', `the gold call ${name} gives an error: ${error}`),
      )
  if (gold.reward !== undefined && !(isRewarded(gold.reward) && gold.reward.reward >= fullReward)) {
    const earned = isRewarded(gold.reward)
      ? `earns ${gold.reward.reward}`
      : `is unscored: ${gold.reward.unscored}`
    findings.push(finding(checks, task, 'gold-earns-less', `the gold ${earned}, of ${fullReward}`))
  }
  return findings
}

/** Carries out the gold by itself. */
export async function traceGold({ bundle, signal }: PlayChecks, task: Task): Promise<GoldTrace> {
  const { calls, state } = await playGold(bundle, task, { seed: 0, signal })
  return { results: calls.map(({ result }) => result), state }
}

/** Compares a second replay with the first, and the writes in another order with the writes as they are. */
export async function replayFindings(
  checks: PlayChecks,
  task: Task,
  first: GoldTrace,
): Promise<readonly Finding[]> {
  const second = await traceGold(checks, task)
  if (!sameJson(second.results, first.results) || !sameJson(second.state, first.state)) {
    const message =
      'two replays of the gold differ; tools take the time from "now" and chance from "random"'
    return [finding(checks, task, 'gold-differs', message)]
  }
  const writes = await goldWrites(checks, task)
  for (const calls of otherOrders(writes)) {
    const { bundle, signal } = checks
    const { state } = await playGold(bundle, task, { seed: 0, signal, calls })
    if (!sameJson(state, first.state)) {
      const order = calls.map(({ name }) => name).join(', ')
      return [
        finding(
          checks,
          task,
          'gold-order-matters',
          `its writes in the order ${order} end elsewhere`,
        ),
      ]
    }
  }
  return []
}

type GoldCalls = NonNullable<Task['gold']>['calls']

/** The gold calls that change the universe. */
async function goldWrites({ bundle, signal }: PlayChecks, task: Task): Promise<GoldCalls> {
  const calls = task.gold?.calls ?? []
  const writes: GoldCalls = []
  let before = bundle.universe.open(task.start ?? []).state
  for (const [index, call] of calls.entries()) {
    const done = calls.slice(0, index + 1)
    const { state } = await playGold(bundle, task, { seed: 0, signal, calls: done })
    if (!sameJson(state, before)) writes.push(call)
    before = state
  }
  return writes
}

/** Orders other than the given one: reversed first, then rotated ones. */
function otherOrders(calls: GoldCalls): readonly GoldCalls[] {
  if (calls.length < 2) return []
  const rotated = calls.slice(1).map((_, by) => [...calls.slice(by + 1), ...calls.slice(0, by + 1)])
  return [calls.toReversed(), ...rotated].slice(0, MAX_GOLD_ORDERS)
}

interface Played {
  readonly reward: Reward | undefined
  readonly calls: readonly PlayedCall[]
  readonly findings: readonly Finding[]
}

async function played(checks: PlayChecks, task: Task, script: Pick<Task, 'gold'>): Promise<Played> {
  const { bundle, reward, play, signal } = checks
  const findings: Finding[] = []
  const broke = (error: unknown) => {
    const failure = authorFailure(bundle, error)
    const at = failure.at ?? bundle.tasks.where(task.id)
    findings.push({ kind: 'breaks', at, task: task.id, message: failure.error, failure })
  }
  try {
    const { calls, outcome } = await playTask(bundle, task.id, goldPlayer(script), {
      ...play,
      signal,
      onToolError: broke,
    })
    return { reward: reward?.reward(outcome), calls, findings }
  } catch (error) {
    signal.throwIfAborted()
    broke(error)
    return { reward: undefined, calls: [], findings }
  }
}

function finding(
  { bundle }: PlayChecks,
  { id }: Task,
  kind: FindingKind,
  message: string,
): Finding {
  return { kind, at: bundle.tasks.where(id), task: id, message }
}
