import type { EpisodeKey, RunRecord } from '@tiltyard/core'
import {
  memoryRunIndex,
  scriptedEnv,
  scriptedPlan,
  type MemoryRunIndex,
  type ScriptedEnvOptions,
} from '@tiltyard/testkit'

import { groupKey, play, type TestRollout } from './play.ts'

export const runRecord: RunRecord = {
  version: 1,
  name: 'run',
  startedAt: 0,
  seed: 11,
  config: {},
  fingerprints: {},
  versions: {},
}

/** Of the first member's first attempt. */
export const firstKey: EpisodeKey = { ...groupKey, member: 0, attempt: 0 }

/** The index of a run that played one group. */
export async function recorded(
  size: number,
  env: ScriptedEnvOptions,
  options: TestRollout = {},
): Promise<MemoryRunIndex> {
  const index = memoryRunIndex()
  const writer = await index.claim(runRecord, { expect: 'new' })
  await play(
    scriptedPlan(size, () => scriptedEnv(env)),
    { writer, ...options },
  )
  return index
}
