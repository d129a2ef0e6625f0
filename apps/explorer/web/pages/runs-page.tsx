import { useQueries, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'

import type { RunLine } from '../../src/api/answers.ts'
import { aboutOptions, metricsOptions, numbersOptions, runOptions, runsOptions } from '../api.ts'
import { formatCount, formatNumber, formatTime } from '../format.ts'
import { REWARD } from '../metrics.ts'
import { given } from '../search.ts'
import { StatusBadge } from '../ui/badges.tsx'
import { Grid } from '../ui/grid.tsx'
import { curveOf, Plot, Spark, type Curve } from '../ui/plot.tsx'
import { Answer } from '../ui/state.tsx'
import { Text } from '../ui/text.tsx'

const route = getRouteApi('/')

export function RunsPage() {
  const { q = '', runs: compared = [] } = route.useSearch()
  const change = useChange()
  const query = useQuery(runsOptions())
  const about = useQuery(aboutOptions())
  const toggle = (name: string) => {
    const kept = compared.includes(name)
      ? compared.filter((run) => run !== name)
      : [...compared, name]
    change({ runs: kept.length === 0 ? undefined : kept })
  }
  return (
    <div className="stack">
      <div className="head">
        <h1>Runs</h1>
        <span className="muted">{about.data?.index}</span>
      </div>
      <Answer query={query} what="the runs">
        {({ runs }) => {
          const shown = runs.filter((run) => isWanted(run, q))
          return (
            <>
              <div className="bar">
                <label>
                  Search
                  <input
                    type="search"
                    data-search
                    value={q}
                    placeholder="name or status"
                    onChange={({ target }) =>
                      change({ q: target.value === '' ? undefined : target.value })
                    }
                  />
                </label>
                <span className="inline muted" role="status">
                  {formatCount(shown.length, 'run')}
                  {compared.length === 0 ? '; tick some to compare their curves' : ''}
                </span>
              </div>
              {compared.length === 0 ? null : (
                <Comparison
                  names={compared}
                  runs={runs}
                  onClear={() => change({ runs: undefined, metric: undefined })}
                />
              )}
              <Grid
                label="Runs"
                rows={shown}
                keyOf={({ name }) => name}
                empty={
                  runs.length === 0
                    ? 'No runs here yet. They appear as soon as one begins.'
                    : 'No run matches.'
                }
                columns={[
                  {
                    title: 'compare',
                    width: '64px',
                    wideOnly: true,
                    cell: ({ name }) => (
                      <input
                        type="checkbox"
                        aria-label={`compare ${name}`}
                        checked={compared.includes(name)}
                        onChange={() => toggle(name)}
                      />
                    ),
                  },
                  {
                    title: 'run',
                    width: 'minmax(0, 2fr)',
                    cell: ({ name, damage }) => (
                      <>
                        <Link to="/runs/$run" params={{ run: name }} data-item>
                          <Text text={name} />
                        </Link>
                        {damage === undefined ? null : (
                          <>
                            {' '}
                            <span className="badge bad" title={damage}>
                              damaged
                            </span>
                          </>
                        )}
                      </>
                    ),
                  },
                  {
                    title: 'status',
                    width: '116px',
                    cell: ({ status }) => <StatusBadge status={status} />,
                  },
                  {
                    title: 'steps',
                    width: '64px',
                    end: true,
                    cell: ({ steps }) => formatNumber(steps),
                  },
                  {
                    title: 'reward',
                    width: 'minmax(0, 1.2fr)',
                    wideOnly: true,
                    cell: (run) => <RewardCell run={run} />,
                  },
                  {
                    title: 'started',
                    width: '160px',
                    wideOnly: true,
                    cell: ({ startedAt }) => (startedAt === undefined ? '' : formatTime(startedAt)),
                  },
                ]}
              />
            </>
          )
        }}
      </Answer>
    </div>
  )
}

interface RunsSearch {
  readonly q?: string | undefined
  readonly runs?: string[] | undefined
  readonly metric?: string | undefined
}

/** Changes a part of the address. */
function useChange() {
  const search = route.useSearch()
  const navigate = useNavigate()
  return (changed: RunsSearch) =>
    void navigate({
      to: '/',
      replace: true,
      resetScroll: false,
      search: given({ ...search, ...changed }),
    })
}

function isWanted({ name, status }: RunLine, q: string): boolean {
  const text = `${name} ${status}`.toLowerCase()
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** Read when the row comes into sight, so that a thousand runs cost no more than a dozen. */
function RewardCell({ run: { name, steps, status } }: { readonly run: RunLine }) {
  const { data } = useQuery(metricsOptions(name, [REWARD], `${steps} ${status}`))
  const train = data?.series.find(({ split }) => split === 'train') ?? data?.series[0]
  if (train === undefined) return null
  return (
    <span
      style={{ display: 'grid', gridTemplateColumns: '1fr 64px', gap: 10, alignItems: 'center' }}
    >
      <Spark values={train.values} />
      <span className="end">{formatNumber(train.values.at(-1))}</span>
    </span>
  )
}

/** One metric of several runs in one plot. */
function Comparison({
  names,
  runs,
  onClear,
}: {
  readonly names: readonly string[]
  readonly runs: readonly RunLine[]
  readonly onClear: () => void
}) {
  const { metric = REWARD } = route.useSearch()
  const change = useChange()
  const known = names.filter((name) => runs.some((run) => run.name === name))
  const answers = useQueries({
    queries: known.map((name) => {
      const { steps = 0, status = '' } = runs.find((run) => run.name === name) ?? {}
      return metricsOptions(name, [metric], `${steps} ${status}`)
    }),
  })
  const curves = useMemo(
    () =>
      answers.flatMap(({ data }, index): Curve[] =>
        (data?.series ?? []).map((series) =>
          curveOf(
            series,
            `${known[index]!}${series.split === 'eval' ? ` · ${series.evaluation ?? 'eval'}` : ''}`,
          ),
        ),
      ),
    [answers, known],
  )
  return (
    <section className="stack" aria-label="Comparison">
      <div className="bar">
        <label>
          Metric
          <input
            type="text"
            list="metric-names"
            defaultValue={metric}
            key={metric}
            size={34}
            onChange={({ target }) => {
              // Chosen from the list; what is typed by hand counts when it is left.
              if (
                document.querySelector(
                  `#metric-names option[value="${CSS.escape(target.value)}"]`,
                ) !== null
              )
                change({ metric: target.value })
            }}
            onBlur={({ target }) => change({ metric: target.value })}
          />
        </label>
        {known[0] === undefined ? null : <MetricNames run={known[0]} />}
        <button type="button" onClick={onClear}>
          Clear
        </button>
      </div>
      {curves.length === 0 && answers.every(({ isPending }) => !isPending) ? (
        <p className="state">None of these runs has “{metric}”.</p>
      ) : (
        <Plot title={metric} curves={curves} height={300} />
      )}
    </section>
  )
}

function MetricNames({ run }: { readonly run: string }) {
  const { data } = useQuery(runOptions(run))
  const place = data?.places.find(({ split }) => split === 'train') ?? data?.places[0]
  const numbers = useQuery({
    ...numbersOptions({
      run,
      split: place?.split ?? 'train',
      evaluation: place?.evaluation,
      step: place?.steps.at(-1) ?? 0,
    }),
    enabled: place !== undefined,
  })
  const names = [
    ...Object.keys(numbers.data?.values ?? {}),
    ...Object.keys(numbers.data?.timing ?? {}),
  ]
  return (
    <datalist id="metric-names">
      {names.map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  )
}
