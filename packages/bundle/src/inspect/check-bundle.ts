import { type Conversation, type RewardRule, systemClock } from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import { bundleEnv, type PlayOptions } from '../play/env.ts'
import type { Task } from '../task.ts'
import { overlapFindings, toolFindings } from './check-parts.ts'
import {
  type GoldTrace,
  type PlayChecks,
  playFindings,
  replayFindings,
  traceGold,
} from './check-plays.ts'
import type { BundleReport, Finding } from './report.ts'

export interface CheckOptions extends PlayOptions {
  /** What decides how much a play earns. Default: the bundle's rule; without one, rewards aren't checked. */
  readonly reward?: RewardRule
  /** Default 1. */
  readonly fullReward?: number
  /** Evals that must share no task, in pairs. Default: those named `train…` with those named `test…`, `eval…`, `valid…`, `held…`, `dev…`. */
  readonly disjoint?: readonly (readonly [string, string])[]
  /** Tokens of a prompt, as a renderer makes it. */
  readonly countTokens?: (conversation: Conversation) => number
  /** Longest first prompt, in tokens. Default: any. */
  readonly mostPromptTokens?: number
  readonly signal?: AbortSignal
}

/**
 * Plays every task with nothing and with its gold, replays the gold, and reports what an author wants to know before
 * training. What is found is data: a task may well be meant to be so.
 */
export async function checkBundle(
  bundle: Bundle,
  options: CheckOptions = {},
): Promise<BundleReport> {
  const {
    reward = bundle.reward,
    fullReward = 1,
    disjoint,
    countTokens,
    mostPromptTokens = Infinity,
    signal = new AbortController().signal,
    ...play
  } = options
  const checks: PlayChecks = { bundle, reward, fullReward, play, signal }
  const tasks = bundle.tasks.ids.map((id) => bundle.tasks.get(id))
  const findings: Finding[] = [...toolFindings(bundle), ...overlapFindings(bundle, disjoint)]
  const lengths: number[] = []
  const traces = new Map<Task, GoldTrace>()
  for (const task of tasks) {
    findings.push(...(await playFindings(checks, task)))
    if (countTokens !== undefined) {
      const length = countTokens(await firstPrompt(checks, task))
      lengths.push(length)
      if (length > mostPromptTokens) {
        const message = `the first prompt takes ${length} tokens, of ${mostPromptTokens}`
        findings.push({
          kind: 'prompt-too-long',
          at: bundle.tasks.where(task.id),
          task: task.id,
          message,
        })
      }
    }
    // Gold in a sandbox can't be replayed in a universe alone.
    if (task.gold !== undefined && bundle.sandbox === undefined)
      traces.set(task, await traceGold(checks, task))
  }
  // A tool that asks the machine's clock gives other results only once the clock has moved on.
  await systemClock.sleep(2, signal)
  for (const [task, trace] of traces) findings.push(...(await replayFindings(checks, task, trace)))
  return {
    bundle: bundle.name,
    fingerprint: bundle.fingerprint,
    tasks: tasks.length,
    withoutGold: tasks.filter(({ gold }) => gold === undefined).length,
    evals: Object.fromEntries([...bundle.evals].map(([name, ids]) => [name, ids.length])),
    findings,
    ...(lengths.length === 0 ? {} : { promptTokens: summary(lengths) }),
  }
}

async function firstPrompt(
  { bundle, play, signal }: PlayChecks,
  task: Task,
): Promise<Conversation> {
  const env = bundleEnv(bundle, task, { ...play, seed: 0 })
  try {
    return await env.start(signal)
  } finally {
    await env.end({ kind: 'cancelled' })
    await env.close()
  }
}

function summary(lengths: readonly number[]): NonNullable<BundleReport['promptTokens']> {
  const sum = lengths.reduce((total, length) => total + length, 0)
  const least = lengths.reduce((left, right) => Math.min(left, right))
  const most = lengths.reduce((left, right) => Math.max(left, right))
  return { least, mean: sum / lengths.length, most }
}
