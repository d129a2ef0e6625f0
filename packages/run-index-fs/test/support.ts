import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { RECORD_VERSION, type EpisodeEvent, type RunEvent, type RunRecord } from '@tiltyard/core'
import { onTestFinished } from 'vitest'

/** A folder that is gone after the test. */
export async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tiltyard-runs-'))
  // A writer's last sign of life may still be under way.
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }))
  return folder
}

export function runRecord(name = 'one'): RunRecord {
  return {
    version: RECORD_VERSION,
    name,
    startedAt: 1_764_000_000_000,
    seed: 7,
    config: { model: 'small' },
    fingerprints: {},
    versions: {},
  }
}

export function episode(member: number, step = 0): EpisodeEvent {
  return {
    type: 'episode',
    key: { split: 'train', step, group: 0, member, attempt: 0 },
    task: 'find-user',
    fingerprint: 'f0',
    seed: 1,
    startedAt: 1_764_000_001_000,
    ms: 20,
    end: { kind: 'completed' },
    messages: [{ role: 'user', content: 'Who is it?' }],
    tools: [],
    calls: [],
    replies: [],
    sequences: [],
  }
}

/** Episode, metrics and end of a step. */
export function stepEvents(step: number): readonly RunEvent[] {
  return [
    episode(0, step),
    { type: 'metrics', split: 'train', step, values: { loss: 1 / 3 }, timing: { 'step:ms': 5 } },
    { type: 'step', step, position: step, totals: {} },
  ]
}

export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
