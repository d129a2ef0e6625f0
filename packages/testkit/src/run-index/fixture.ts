import type { ClaimOptions, RunEvent, RunIndex, RunWriter } from '@tiltyard/core'

import type { ConformanceCase } from '../cases.ts'
import { runRecord } from './events.ts'

/** What a run index may lack. Each is declared with the reason; an undeclared lack fails. */
export type RunIndexFeature =
  /** Another object over the same store sees the same runs. */
  | 'reopen'
  /** A run whose writer is alive is refused to a second one, unless that takes it over. */
  | 'liveness'
  /** Writers may join a run. */
  | 'join'
  /** `upkeep` is there. */
  | 'upkeep'

export interface RunIndexCasesOptions {
  /** A fresh and empty index, closed by the case. */
  readonly create: () => Promise<RunIndex>
  /** Another index over the same store, as another process would open it. Closed by the case. */
  readonly reopen?: (index: RunIndex) => Promise<RunIndex>
  /** Called with each created index once its case is over. */
  readonly release?: (index: RunIndex) => Promise<void>
  readonly lacks?: Readonly<Partial<Record<RunIndexFeature, string>>>
}

/** What a case works with. */
export interface Bench {
  readonly index: RunIndex
  /** An index that another process might have: reads what is durable. The same object where `reopen` is lacking. */
  readonly other: RunIndex
  /** A writer of a run that is new, or as the options say. */
  readonly claim: (run: string, options?: Partial<ClaimOptions>) => Promise<RunWriter>
}

export type RunIndexPromise = (
  name: string,
  body: (bench: Bench) => Promise<void>,
  feature?: RunIndexFeature,
) => ConformanceCase

export function runIndexPromise(options: RunIndexCasesOptions): RunIndexPromise {
  const { create, reopen, release, lacks = {} } = options
  return (promise, body, feature) => {
    const skip = feature === undefined ? undefined : lacks[feature]
    const run = async () => {
      const index = await create()
      const other = lacks.reopen === undefined ? await reopened(reopen, index) : index
      try {
        await body({
          index,
          other,
          claim: (name, claim = {}) => index.claim(runRecord(name), { expect: 'new', ...claim }),
        })
      } finally {
        await index.close().catch(() => {})
        await other.close().catch(() => {})
        await release?.(index)
      }
    }
    return { name: promise, ...(skip === undefined ? {} : { skip }), run }
  }
}

async function reopened(
  reopen: RunIndexCasesOptions['reopen'],
  index: RunIndex,
): Promise<RunIndex> {
  if (reopen === undefined)
    throw new Error('give `reopen`, or declare with its reason that the index lacks it')
  return reopen(index)
}

export async function appendAll(writer: RunWriter, events: readonly RunEvent[]): Promise<void> {
  for (const event of events) await writer.append(event)
}

/** Appends and makes durable. */
export async function record(writer: RunWriter, events: readonly RunEvent[]): Promise<void> {
  await appendAll(writer, events)
  await writer.flush()
}

export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
