import type { EpisodeEvent, RunEvent, RunIndex, RunRecord } from '@tiltyard/core'

export function runRecord(name: string): RunRecord {
  return {
    version: 1,
    name,
    startedAt: 1_764_000_000_000,
    seed: 1,
    config: {},
    fingerprints: {},
    versions: {},
  }
}

export function episodeEvent(step: number, member: number): EpisodeEvent {
  return {
    type: 'episode',
    key: { split: 'train', step, group: 0, member, attempt: 0 },
    task: `task-${member % 5}`,
    fingerprint: 'f',
    seed: member,
    startedAt: 1_764_000_000_000,
    ms: 1,
    end: { kind: 'completed' },
    messages: [{ role: 'user', content: `episode ${member} of step ${step}` }],
    tools: [],
    calls: [],
    replies: [],
    sequences: [],
  }
}

export function stepEvents(step: number, episodes: number): readonly RunEvent[] {
  return [
    ...Array.from({ length: episodes }, (_, member) => episodeEvent(step, member)),
    { type: 'metrics', split: 'train', step, values: { loss: 1 / (step + 1) }, timing: {} },
    { type: 'step', step, position: step, totals: {} },
  ]
}

/** Members of the episodes of a step, in order. */
export async function membersOf(
  index: RunIndex,
  run: string,
  step: number,
): Promise<readonly number[]> {
  const members: number[] = []
  for await (const { key } of index.episodes(run, { split: 'train', step }))
    members.push(key.member)
  return members
}
