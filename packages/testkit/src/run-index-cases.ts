import type { ConformanceCase } from './cases.ts'
import { claimCases } from './run-index/claim-cases.ts'
import { runIndexPromise, type RunIndexCasesOptions } from './run-index/fixture.ts'
import { listCases } from './run-index/list-cases.ts'
import { recordCases } from './run-index/record-cases.ts'
import { resumeCases } from './run-index/resume-cases.ts'
import { upkeepCases } from './run-index/upkeep-cases.ts'

export type { RunIndexCasesOptions, RunIndexFeature } from './run-index/fixture.ts'

/**
 * What every run index promises. Not covered, since it takes the store's own means: crashes, full disks, lost answers, speed.
 */
export function runIndexCases(options: RunIndexCasesOptions): readonly ConformanceCase[] {
  const promise = runIndexPromise(options)
  return [claimCases, recordCases, resumeCases, listCases, upkeepCases].flatMap((cases) =>
    cases(promise),
  )
}
