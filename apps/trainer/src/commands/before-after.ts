import { isRewarded, type EpisodeSummary, type RunIndex } from '@tiltyard/core'

import { sideBySide } from '../output/columns.ts'
import { transcript } from '../output/transcript.ts'

/**
 * One held-out task as the first and the last evaluation of a run played it: one that was lost before and is won after, if
 * there is one. Empty when the run has fewer than two evaluations.
 */
export async function beforeAndAfter(
  index: RunIndex,
  run: string,
  width: number,
): Promise<readonly string[]> {
  const plays = new Map<number, Map<string, EpisodeSummary>>()
  for await (const play of index.episodes(run, { split: 'eval' })) {
    const { step } = play.key
    if (!plays.has(step)) plays.set(step, new Map())
    plays.get(step)!.set(`${play.key.evaluation ?? ''} ${play.task}`, play)
  }
  const steps = [...plays.keys()].toSorted((a, b) => a - b)
  const [first, last] = [steps.at(0), steps.at(-1)]
  if (first === undefined || last === undefined || first === last) return []
  const pairs = [...plays.get(first)!].flatMap(([task, before]) => {
    const after = plays.get(last)!.get(task)
    return after === undefined ? [] : [{ before, after }]
  })
  const gain = ({ before, after }: (typeof pairs)[number]) => rewardOf(after) - rewardOf(before)
  const best = pairs.toSorted((a, b) => gain(b) - gain(a))[0]
  if (best === undefined) return []
  const [before, after] = [
    await index.episode(run, best.before.key),
    await index.episode(run, best.after.key),
  ]
  return sideBySide(
    { title: `before (step ${first})`, lines: transcript(before) },
    { title: `after (step ${last})`, lines: transcript(after) },
    width,
  )
}

function rewardOf({ reward }: EpisodeSummary): number {
  return reward !== undefined && isRewarded(reward) ? reward.reward : Number.NEGATIVE_INFINITY
}
