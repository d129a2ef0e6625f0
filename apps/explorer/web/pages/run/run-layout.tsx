import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet } from '@tanstack/react-router'

import type { RunAnswer } from '../../../src/api/answers.ts'
import { runOptions } from '../../api.ts'
import { formatTime } from '../../format.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { type Fact, FactList } from '../../ui/facts.tsx'
import { Answer } from '../../ui/state.tsx'
import { Text } from '../../ui/text.tsx'

const route = getRouteApi('/runs/$run')

const tabs = [
  ['/runs/$run', 'Overview'],
  ['/runs/$run/steps', 'Steps'],
  ['/runs/$run/episodes', 'Episodes'],
  ['/runs/$run/untrained', 'Not trained'],
  ['/runs/$run/setup', 'Setup'],
] as const

export function RunLayout() {
  const { run } = route.useParams()
  const query = useQuery(runOptions(run))
  return (
    <div className="stack">
      <div className="head">
        <h1>
          <Text text={run} />
        </h1>
        {query.data === undefined ? null : <StatusBadge status={query.data.run.status} />}
      </div>
      <Answer query={query} what="the run">
        {(answer) => (
          <>
            <Facts answer={answer} />
            <nav className="tabs" aria-label="Of this run">
              {tabs.map(([to, title]) => (
                <Link
                  key={to}
                  to={to}
                  params={{ run }}
                  activeOptions={{ exact: true, includeSearch: false }}
                  activeProps={{ className: 'active' }}
                >
                  {title}
                </Link>
              ))}
            </nav>
            <Outlet />
          </>
        )}
      </Answer>
    </div>
  )
}

function Facts({ answer: { run, record, totals, end } }: { readonly answer: RunAnswer }) {
  const { model } = record.config
  const facts: readonly Fact[] = [
    ['steps', String(run.steps)],
    ['model', typeof model === 'string' ? model : undefined],
    ['seed', String(record.seed)],
    ['started', formatTime(record.startedAt)],
    ['episodes', totals['episodes']?.toLocaleString('en-US')],
    ['tokens trained', totals['trained_tokens']?.toLocaleString('en-US')],
  ]
  return (
    <>
      <FactList facts={facts} />
      {run.damage === undefined ? null : (
        <p className="panel bad">
          Not all of it can be read: <Text text={run.damage} />
        </p>
      )}
      {end?.error === undefined ? null : (
        <p className="panel bad">
          It ended by {end.error.name}: <Text text={end.error.message} />
        </p>
      )}
    </>
  )
}

/** The run of the page; it is there, since the layout waits for it. */
export function useRun(): RunAnswer & { readonly name: string; readonly revision: string } {
  const { run } = route.useParams()
  const { data } = useQuery(runOptions(run))
  if (data === undefined) throw new Error('a page of a run is shown before the run')
  const measured = data.places.map(({ steps }) => steps.length)
  return { ...data, name: run, revision: `${data.run.status} ${measured.join()}` }
}
