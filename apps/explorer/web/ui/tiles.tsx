import { Link } from '@tanstack/react-router'

import type { EpisodeLine } from '../../src/api/answers.ts'
import { formatNumber, words } from '../format.ts'
import { rewardOf } from './badges.tsx'

export interface TilesProps {
  readonly run: string
  readonly episodes: readonly EpisodeLine[]
  /** Smallest and largest reward of those that are compared. */
  readonly range: readonly [number, number]
  readonly current?: string
  readonly isFaded?: (episode: EpisodeLine) => boolean
}

/** Episodes side by side, each with its reward and what was unusual about it. */
export function Tiles({ run, episodes, range, current, isFaded }: TilesProps) {
  return (
    <ul className="tiles">
      {episodes.map((episode) => (
        <li key={episode.id}>
          <Tile
            run={run}
            episode={episode}
            range={range}
            isCurrent={episode.id === current}
            isFaded={isFaded?.(episode) === true}
          />
        </li>
      ))}
    </ul>
  )
}

function Tile({
  run,
  episode,
  range: [low, high],
  isCurrent,
  isFaded,
}: {
  readonly run: string
  readonly episode: EpisodeLine
  readonly range: readonly [number, number]
  readonly isCurrent: boolean
  readonly isFaded: boolean
}) {
  const reward = rewardOf(episode)
  const share = reward === undefined ? 0 : high > low ? (reward - low) / (high - low) : 0
  const isFailed =
    episode.end === 'failed' || episode.end === 'cancelled' || episode.end === 'unfinished'
  const why = unusual(episode)
  return (
    <Link
      to="/runs/$run/episode/$"
      params={{ run, _splat: episode.id }}
      className={`tile ${isFailed ? 'failed' : ''} ${isFaded ? 'faded' : ''}`}
      aria-current={isCurrent ? 'page' : undefined}
      data-item={isCurrent ? undefined : ''}
    >
      <span className="unseen">
        episode {episode.member}
        {episode.attempt > 0 ? `, attempt ${episode.attempt}` : ''}: reward
      </span>
      <span className="value">{reward === undefined ? '–' : formatNumber(reward)}</span>
      <span className="why">{why || '\u00A0'}</span>
      {reward === undefined ? null : (
        <span
          className={`level ${share < 0.5 ? 'low' : ''}`}
          style={{ width: `${Math.max(6, share * 100)}%` }}
        />
      )}
    </Link>
  )
}

function unusual({ end, attempt, trained, reward }: EpisodeLine): string {
  if (end !== 'completed') return `${words(end)}${attempt > 0 ? `, retry ${attempt}` : ''}`
  if (attempt > 0) return `retry ${attempt}`
  if (reward !== undefined && !('reward' in reward)) return 'unscored'
  return typeof trained === 'string' ? words(trained) : ''
}

export function rewardRange(episodes: readonly EpisodeLine[]): readonly [number, number] {
  const rewards = episodes.map(rewardOf).filter((reward) => reward !== undefined)
  return [Math.min(0, ...rewards), Math.max(0, ...rewards)]
}
