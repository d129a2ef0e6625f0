import type { EpisodeKey, RunEvent } from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'

/** Records runs of two steps in a folder: four episodes each, of two tasks, the odd ones rewarded and trained. */
export async function recordRuns(folder: string, names: readonly string[]): Promise<void> {
  const index = fsRunIndex({ folder })
  for (const name of names) {
    const writer = await index.claim(
      { version: 1, name, startedAt: 0, seed: 1, config: {}, fingerprints: {}, versions: {} },
      { expect: 'new' },
    )
    for (const event of [0, 1].flatMap(stepEvents)) await writer.append(event)
    await writer.append({ type: 'end', status: 'completed', step: 1, at: 1 })
  }
  await index.close()
}

function stepEvents(step: number): readonly RunEvent[] {
  const keys = [0, 1].flatMap((group) =>
    [0, 1].map((member) => ({ split: 'train', step, group, member, attempt: 0 }) as const),
  )
  return [
    ...keys.flatMap(episodeEvents),
    ...[0, 1].map((group): RunEvent => {
      const key = { split: 'train', step, group } as const
      return { type: 'group', key, task: `task-${group}`, fingerprint: 'f', members: 2 }
    }),
    { type: 'metrics', split: 'train', step, values: { loss: 0.5 }, timing: { 'step:ms': 3 } },
    { type: 'step', step, position: step, totals: { episodes: 4 } },
  ]
}

function episodeEvents(key: EpisodeKey): readonly RunEvent[] {
  return [
    {
      type: 'episode',
      key,
      task: `task-${key.group}`,
      fingerprint: 'f',
      seed: 7,
      startedAt: 1_764_000_000_000,
      ms: 1,
      end: { kind: 'completed' },
      messages: [{ role: 'user', content: 'Who is it?' }],
      tools: [],
      calls: [],
      replies: [],
      sequences: [
        {
          ids: Int32Array.of(5, 6),
          logprobs: Float32Array.of(0, -0.5),
          mask: Int32Array.of(0, 1),
        },
      ],
    },
    {
      type: 'score',
      key,
      scores: { answer: { value: key.member } },
      metrics: {},
      reward: { reward: key.member },
    },
    {
      type: 'training',
      key,
      step: key.step,
      ...(key.member === 0 ? { untrained: 'no spread' } : {}),
      data: [],
    },
  ]
}
