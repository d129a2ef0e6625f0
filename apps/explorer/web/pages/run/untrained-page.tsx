import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'

import type { EpisodeLine } from '../../../src/api/answers.ts'
import { metricsOptions, siblingsOptions } from '../../api.ts'
import { formatCount, formatNumber, words } from '../../format.ts'
import { losses } from '../../metrics.ts'
import { rewardOf } from '../../ui/badges.tsx'
import { Grid } from '../../ui/grid.tsx'
import { Answer, Nothing } from '../../ui/state.tsx'
import { Text } from '../../ui/text.tsx'
import { useEpisodes } from './episodes-page.tsx'
import { useRun } from './run-layout.tsx'

const route = getRouteApi('/runs/$run/untrained')

/** What was played and didn't train: dropped, failed and retried, with the causes. */
export function UntrainedPage() {
  const { failures } = useRun()
  return (
    <>
      <Failures />
      <ByStep />
      {failures.length === 0 ? null : (
        <section className="stack" aria-label="Failures of the run">
          <h2>Failures of the run itself</h2>
          <Grid
            label="Failures of the run"
            rows={failures.map((failure, index) => ({ ...failure, index }))}
            keyOf={({ index }) => String(index)}
            empty=""
            columns={[
              { title: 'step', width: '70px', cell: ({ step }) => step ?? '–' },
              { title: 'phase', width: '110px', cell: ({ phase }) => phase },
              {
                title: 'cause',
                width: 'minmax(0, 1fr)',
                cell: ({ error }) => <Cause error={error} />,
              },
            ]}
          />
        </section>
      )}
    </>
  )
}

function ByStep() {
  const { name: run, revision } = useRun()
  const query = useQuery(
    metricsOptions(
      run,
      losses.map(({ name }) => name),
      revision,
    ),
  )
  return (
    <section className="stack" aria-label="By step">
      <h2>By step</h2>
      <Answer query={query} what="the counts">
        {({ series }) => {
          const steps = new Map<number, Map<string, number>>()
          for (const { split, name, steps: at, values } of series) {
            if (split !== 'train') continue
            for (const [index, step] of at.entries()) {
              const value = values[index] ?? 0
              if (value === 0) continue
              const counts = steps.get(step) ?? new Map<string, number>()
              steps.set(step, counts)
              counts.set(name, value)
            }
          }
          const rows = [...steps].sort(([a], [b]) => b - a)
          const seen = losses.filter(({ name }) => rows.some(([, counts]) => counts.has(name)))
          if (rows.length === 0) return <Nothing>Every episode of every step was trained.</Nothing>
          return (
            <Grid
              label="Not trained, by step"
              rows={rows}
              keyOf={([step]) => String(step)}
              empty=""
              columns={[
                {
                  title: 'step',
                  width: '80px',
                  cell: ([step]) => (
                    <Link
                      data-item
                      to="/runs/$run/$split/$step"
                      params={{ run, split: 'train', step }}
                    >
                      {step}
                    </Link>
                  ),
                },
                ...seen.map(({ name, title, filter }) => ({
                  title,
                  width: 'minmax(60px, 1fr)',
                  end: true,
                  cell: ([step, counts]: (typeof rows)[number]) => {
                    const count = counts.get(name)
                    return count === undefined ? (
                      <span className="muted">0</span>
                    ) : (
                      <Link
                        to="/runs/$run/$split/$step"
                        params={{ run, split: 'train', step }}
                        search={filter}
                        aria-label={`${title} of step ${step}: ${count}`}
                      >
                        {formatNumber(count)}
                      </Link>
                    )
                  },
                })),
              ]}
            />
          )
        }}
      </Answer>
    </section>
  )
}

const lists = ['failed', 'unfinished', 'cancelled'] as const

function Failures() {
  const { name: run } = useRun()
  const { list = 'failed' } = route.useSearch()
  const query = useEpisodes({ run, end: list })
  return (
    <section className="stack" aria-label="Episodes without an end of their own">
      <div className="head">
        <h2>Episodes</h2>
        <div className="chips">
          {lists.map((name) => (
            <Link
              key={name}
              from="/runs/$run/untrained"
              to="."
              search={{ list: name }}
              resetScroll={false}
              className={`badge ${name === list ? 'live' : ''}`}
              style={name === list ? { animation: 'none' } : {}}
              aria-current={name === list ? 'true' : undefined}
            >
              {name}
            </Link>
          ))}
        </div>
      </div>
      <Answer query={query} what="the episodes">
        {({ pages }) => {
          const episodes = pages.flatMap((page) => page.episodes)
          return (
            <>
              <p className="muted small" role="status">
                {query.hasNextPage
                  ? `The first ${episodes.length}`
                  : formatCount(episodes.length, 'episode')}
              </p>
              <Grid
                label={`Episodes ${list}`}
                rows={episodes}
                keyOf={({ id }) => id}
                empty={`No episode is ${list}.`}
                columns={[
                  {
                    title: 'episode',
                    width: 'minmax(150px, 1fr)',
                    cell: ({ id }) => (
                      <Link data-item to="/runs/$run/episode/$" params={{ run, _splat: id }}>
                        {id}
                      </Link>
                    ),
                  },
                  {
                    title: 'task',
                    width: 'minmax(0, 1fr)',
                    wideOnly: true,
                    cell: ({ task }) => <Text text={task} />,
                  },
                  {
                    title: 'cause',
                    width: 'minmax(0, 2fr)',
                    cell: (episode) => <EpisodeCause episode={episode} />,
                  },
                  {
                    title: 'played again',
                    width: 'minmax(90px, 130px)',
                    wideOnly: true,
                    cell: (episode) => <Retry run={run} episode={episode} />,
                  },
                ]}
              />
              {query.hasNextPage ? (
                <div>
                  <button type="button" onClick={() => void query.fetchNextPage()}>
                    More
                  </button>
                </div>
              ) : null}
            </>
          )
        }}
      </Answer>
    </section>
  )
}

interface ErrorText {
  readonly name: string
  readonly message: string
}

function Cause({ error: { name, message } }: { readonly error: ErrorText }) {
  return (
    <span className="wrap">
      {name}: <Text text={message} />
    </span>
  )
}

function EpisodeCause({ episode: { reason } }: { readonly episode: EpisodeLine }) {
  if (reason?.kind !== 'failed')
    return (
      <span className="muted">
        {reason === undefined ? 'its writer stopped' : words(reason.kind)}
      </span>
    )
  return (
    <>
      <span className="badge">{reason.phase}</span> <Cause error={reason.error} />
    </>
  )
}

/** The attempt that followed, asked for when the row comes into sight. */
function Retry({ run, episode }: { readonly run: string; readonly episode: EpisodeLine }) {
  const { split, evaluation, step, group, member, attempt } = episode
  const { data } = useQuery(siblingsOptions({ run, split, evaluation, step, group }))
  if (data === undefined) return null
  const next = data.episodes.find((each) => each.member === member && each.attempt === attempt + 1)
  if (next === undefined) return <span className="muted">no</span>
  const reward = rewardOf(next)
  return (
    <Link to="/runs/$run/episode/$" params={{ run, _splat: next.id }}>
      {reward === undefined ? words(next.end) : `reward ${formatNumber(reward)}`}
    </Link>
  )
}
