import { Link } from '@tanstack/react-router'

import type { EpisodeLine } from '../../src/api/answers.ts'
import { formatMs, formatNumber, formatSigned } from '../format.ts'
import { EndBadge, rewardOf, rewardText, trainedText } from './badges.tsx'
import { Grid } from './grid.tsx'
import { Text } from './text.tsx'

/** Episodes as a table: one line each. */
export function EpisodeGrid({
  run,
  episodes,
}: {
  readonly run: string
  readonly episodes: readonly EpisodeLine[]
}) {
  return (
    <Grid
      label="Episodes"
      rows={episodes}
      keyOf={({ id }) => id}
      empty="No episode matches."
      columns={[
        {
          title: 'episode',
          width: 'minmax(150px, 1.4fr)',
          cell: ({ id }) => (
            <Link data-item to="/runs/$run/episode/$" params={{ run, _splat: id }}>
              {id}
            </Link>
          ),
        },
        {
          title: 'task',
          width: 'minmax(0, 1.2fr)',
          wideOnly: true,
          cell: ({ task }) => (
            <Link to="/runs/$run/task" params={{ run }} search={{ task }}>
              <Text text={task} />
            </Link>
          ),
        },
        {
          title: 'end',
          width: 'minmax(90px, 130px)',
          cell: (episode) => <EndBadge episode={episode} />,
        },
        {
          title: 'reward',
          width: '70px',
          end: true,
          cell: (episode) => rewardText(episode) ?? formatNumber(rewardOf(episode)),
        },
        {
          title: 'advantage',
          width: '80px',
          end: true,
          wideOnly: true,
          cell: ({ advantage }) => (advantage === undefined ? '–' : formatSigned(advantage)),
        },
        { title: 'training', width: 'minmax(0, 1fr)', wideOnly: true, cell: trainedText },
        {
          title: 'tokens',
          width: '70px',
          end: true,
          wideOnly: true,
          cell: ({ sampledTokens }) => formatNumber(sampledTokens),
        },
        { title: 'time', width: '70px', end: true, wideOnly: true, cell: ({ ms }) => formatMs(ms) },
      ]}
    />
  )
}
