import type { ConformanceCase } from './cases.ts'

/** What became of a case: kept, broken with the reason, or left out with the reason. */
export interface CaseResult {
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** Why it failed, as thrown; or was skipped, in words. */
  readonly reason?: unknown
  readonly milliseconds: number
}

export interface RunCasesOptions {
  /** How many run at the same time. Default 1. */
  readonly atOnce?: number
  /** No further case is begun; those under way are not reported. */
  readonly signal?: AbortSignal
}

/** Runs cases outside a test runner. Results come in the order of the cases. */
export async function* runCases(
  cases: readonly ConformanceCase[],
  { atOnce = 1, signal }: RunCasesOptions = {},
): AsyncGenerator<CaseResult, void, undefined> {
  const running: Promise<CaseResult>[] = []
  const over = () => signal?.aborted === true
  let next = 0
  // Each place takes the next case when its last one is over.
  const take = async (): Promise<void> => {
    while (next < cases.length && !over()) {
      const at = next++
      running[at] = resultOf(cases[at]!)
      await running[at]
    }
  }
  const places = Array.from({ length: Math.max(1, atOnce) }, take)
  for (let at = 0; at < cases.length; at += 1) {
    // Begun, unless the signal came first: places begin cases in order.
    while (running[at] === undefined && !over()) await running[at - 1]
    const result = await running[at]
    if (result === undefined || over()) break
    yield result
  }
  await Promise.all(places)
}

async function resultOf({ name, run, skip }: ConformanceCase): Promise<CaseResult> {
  const began = performance.now()
  if (skip !== undefined) return { name, outcome: 'skipped', reason: skip, milliseconds: 0 }
  try {
    await run()
    return { name, outcome: 'passed', milliseconds: performance.now() - began }
  } catch (reason) {
    return { name, outcome: 'failed', reason, milliseconds: performance.now() - began }
  }
}
