import type { EpisodeLine, RunLine } from '../../src/api/answers.ts'
import { words } from '../format.ts'

const statusKinds = {
  running: 'live',
  completed: 'good',
  interrupted: 'warn',
  failed: 'bad',
} as const

export function StatusBadge({ status }: { readonly status: RunLine['status'] }) {
  return <span className={`badge ${statusKinds[status]}`}>{status}</span>
}

/** Why an episode ended. */
export function EndBadge({ episode }: { readonly episode: EpisodeLine }) {
  const { end, reason } = episode
  const kind = end === 'completed' ? 'good' : reason?.kind === 'cut' ? 'warn' : 'bad'
  return (
    <span className={`badge ${kind}`}>
      {reason?.kind === 'cut' ? 'cut: ' : ''}
      {words(end)}
    </span>
  )
}

/** Whether an episode trained, in a word or two. */
export function trainedText({ trained, split }: EpisodeLine): string {
  if (split === 'eval') return 'evaluation'
  if (trained === true) return 'trained'
  return trained === undefined ? 'not decided' : `not trained: ${words(trained)}`
}

export function rewardText({ reward }: EpisodeLine): string | undefined {
  if (reward === undefined) return undefined
  return 'reward' in reward ? undefined : 'unscored'
}

/** The reward as a number, where there is one. */
export function rewardOf({ reward }: EpisodeLine): number | undefined {
  return reward !== undefined && 'reward' in reward ? reward.reward : undefined
}
