import {
  systemClock,
  type EndReason,
  type Episode,
  type EpisodeOutcome,
  type Limits,
  type TaskSource,
} from '@tiltyard/core'

import { byteRenderer } from './byte-renderer.ts'
import { recorded, type Recorded } from './harness.ts'
import type { ByteSampler } from './sampler.ts'

export interface Played {
  readonly episode: Episode
  readonly end: EndReason
  readonly outcome: EpisodeOutcome
  readonly record: Recorded
}

/** Opens the first task of a source, plays it as rollout does, ends and scores it. */
export async function playFirst(
  source: TaskSource,
  sampler: ByteSampler,
  {
    limits = {},
    signal = new AbortController().signal,
  }: { limits?: Limits; signal?: AbortSignal } = {},
): Promise<Played> {
  const episode = await openFirst(source)
  const record = recorded()
  const policy = { sampler, renderer: byteRenderer(), sampling: {} }
  const end = await episode
    .play(policy, { signal, seed: 1, limits, record })
    .catch((): EndReason =>
      signal.aborted
        ? { kind: 'cut', by: 'episode_time' }
        : { kind: 'failed', phase: 'sample', error: { name: 'Error', message: 'rejected' } },
    )
  await episode.end(end)
  const outcome = await episode.score(new AbortController().signal)
  await episode.close()
  return { episode, end, outcome, record }
}

export async function openFirst(source: TaskSource): Promise<Episode> {
  for await (const task of source.tasks('all'))
    return (await source.open(task, { seed: 5, signal: new AbortController().signal })) as Episode
  throw new Error('no task')
}

/** Waits until something holds, looking often. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await systemClock.sleep(10)
}
