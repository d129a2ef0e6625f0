import type { PlayedCall } from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import { playGold } from '../play/gold.ts'
import type { Change } from '../universe/universe.ts'
import { type AuthorFailure, authorFailure } from './failure.ts'

/** What a task's gold calls do. */
export interface GoldReport {
  readonly task: string
  readonly calls: readonly PlayedCall[]
  /** Where the universe differs afterwards, by JSON Pointer. */
  readonly changes: readonly Change[]
  /** What tools threw and did not mean to. */
  readonly failures: readonly AuthorFailure[]
}

export interface GoldReportOptions {
  /** Of the task's instance. Default 0. */
  readonly seed?: number
  readonly signal?: AbortSignal
}

/** Carries out the gold calls of a task in a fresh universe. @throws NotFoundError for a task that doesn't exist. */
export async function goldReport(
  bundle: Bundle,
  taskId: string,
  { seed = 0, signal = new AbortController().signal }: GoldReportOptions = {},
): Promise<GoldReport> {
  const failures: AuthorFailure[] = []
  const task = bundle.tasks.get(taskId)
  const { calls, changes } = await playGold(bundle, task, {
    seed,
    signal,
    onToolError: (error) => failures.push(authorFailure(bundle, error)),
  })
  return { task: taskId, calls, changes, failures }
}
