/** One promise of a contract, as data: any test runner can register it, and a command can run it against a live service. */
export interface ConformanceCase {
  /** The promise in plain words. */
  readonly name: string
  /** Why the adapter doesn't keep it, as the adapter declared. Shown as skipped, never as passed. */
  readonly skip?: string
  /** Rejects when the promise is broken. */
  readonly run: () => Promise<void>
}

/** The part of `test` that vitest, jest and node:test share. */
export interface TestFunction {
  (name: string, body: () => Promise<void>): unknown
  readonly skip: (this: void, name: string, body: () => Promise<void>) => unknown
}

export function registerCases(test: TestFunction, cases: Iterable<ConformanceCase>): void {
  for (const { name, skip, run } of cases) {
    if (skip === undefined) test(name, run)
    else test.skip(`${name} (${skip})`, run)
  }
}
