import { silentLogger } from '@tiltyard/core'

import type { GoldPlay } from '../author/verifier.ts'
import type { Bundle } from '../bundle.ts'
import type { Task } from '../task.ts'
import { episodeCalls, type ToolErrorHook } from './calls.ts'
import { clockOf, factsOf } from './facts.ts'

export interface GoldOptions {
  readonly seed: number
  readonly signal: AbortSignal
  /** Calls to carry out instead of the task's gold. */
  readonly calls?: NonNullable<Task['gold']>['calls']
  readonly onToolError?: ToolErrorHook
}

/** Carries out a task's gold calls from its start, in a universe of their own. A call that fails is noted, and the next one follows. */
export async function playGold(
  bundle: Bundle,
  task: Task,
  { seed, signal, calls = task.gold?.calls ?? [], onToolError }: GoldOptions,
): Promise<GoldPlay> {
  const universe = bundle.universe.open(task.start ?? [])
  const running = episodeCalls({
    bundle,
    task: factsOf(task),
    universe,
    sandbox: undefined,
    now: clockOf(bundle, task),
    seed,
    log: silentLogger,
    onToolError,
  })
  const given = calls.map((call, index) => ({ id: `gold_${index}`, ...call }))
  const answers = await running.run(given, [...bundle.tools.keys()], {
    signal,
    toolCallsLeft: given.length,
  })
  return {
    calls: answers.map(({ played }) => played),
    state: universe.state,
    changes: universe.changes(),
  }
}
