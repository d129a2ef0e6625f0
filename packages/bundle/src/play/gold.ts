import { silentLogger } from '@tiltyard/core'

import type { GoldPlay } from '../author/verifier.ts'
import type { Bundle } from '../bundle.ts'
import type { Task } from '../task.ts'
import { episodeCalls } from './calls.ts'
import { factsOf } from './facts.ts'

/** Carries out a task's gold calls from its start, in a universe of their own. A call that fails is noted, and the next one follows. */
export async function playGold(
  bundle: Bundle,
  task: Task,
  seed: number,
  signal: AbortSignal,
): Promise<GoldPlay> {
  const universe = bundle.universe.open(task.start ?? [])
  const calls = episodeCalls({
    bundle,
    task: factsOf(task),
    universe,
    sandbox: undefined,
    now: task.clock === undefined ? bundle.clock : Date.parse(task.clock),
    seed,
    log: silentLogger,
  })
  const gold = (task.gold?.calls ?? []).map((call, index) => ({ id: `gold_${index}`, ...call }))
  const context = { signal, toolCallsLeft: gold.length }
  const answers = await calls.run(gold, [...bundle.tools.keys()], context)
  return {
    calls: answers.map(({ played }) => played),
    state: universe.state,
    changes: universe.changes(),
  }
}
