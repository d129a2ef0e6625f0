import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'

import type { RunAnswer, Series, SeriesPlace } from '../../../src/api/answers.ts'
import { metricsOptions, numbersOptions } from '../../api.ts'
import { formatNumber } from '../../format.ts'
import { plansFor, type PlotPlan } from '../../metrics.ts'
import { given } from '../../search.ts'
import { Grid } from '../../ui/grid.tsx'
import { curveOf, Plot } from '../../ui/plot.tsx'
import { Answer, Nothing } from '../../ui/state.tsx'
import { useRun } from './run-layout.tsx'

const route = getRouteApi('/runs/$run/')

/** Most metrics that one question asks for. */
const AT_ONCE = 24

export function OverviewPage() {
  const { name: run, places, checkpoints } = useRun()
  const place = mainPlace(places)
  if (place === undefined)
    return (
      <Nothing>No step is complete yet. The page follows the run and shows it when it is.</Nothing>
    )
  return (
    <>
      <Plots run={run} place={place} />
      <AllNumbers run={run} place={place} />
      {checkpoints.length === 0 ? null : <Checkpoints checkpoints={checkpoints} />}
    </>
  )
}

type MeasuredPlace = RunAnswer['places'][number]

/** What is plotted unless asked otherwise: the training, or of a run that only evaluates its evaluation. */
function mainPlace(places: readonly MeasuredPlace[]): MeasuredPlace | undefined {
  return places.find(({ split }) => split === 'train') ?? places[0]
}

function useNumbers(run: string, { split, evaluation, steps }: MeasuredPlace) {
  return useQuery(numbersOptions({ run, split, evaluation, step: steps.at(-1) ?? 0 }))
}

function Plots({ run, place }: { readonly run: string; readonly place: MeasuredPlace }) {
  const { plot: asked = [] } = route.useSearch()
  const query = useNumbers(run, place)
  return (
    <Answer query={query} what="the metrics">
      {({ values, timing }) => {
        const plans: readonly PlotPlan[] = [
          ...asked.map((name) => ({ title: name, curves: [[name, 'value']] as const })),
          ...plansFor([...Object.keys(values), ...Object.keys(timing)]),
        ]
        return (
          <section className="plots" aria-label="Curves">
            {plans.map((plan) => (
              <RunPlot key={plan.title} run={run} place={place} plan={plan} />
            ))}
          </section>
        )
      }}
    </Answer>
  )
}

function RunPlot({
  run,
  place,
  plan: { title, curves },
}: {
  readonly run: string
  readonly place: SeriesPlace
  readonly plan: PlotPlan
}) {
  const { revision } = useRun()
  const navigate = route.useNavigate()
  const names = curves.map(([name]) => name).slice(0, AT_ONCE)
  const { data } = useQuery(metricsOptions(run, names, revision))
  const shown = useMemo(() => {
    const series = data?.series ?? []
    // Evaluations are drawn where there is one curve to compare them with.
    const wanted = series.filter((each) => curves.length === 1 || isAt(each, place))
    // What the page is about has the first colour.
    const ordered = wanted.toSorted((a, b) => Number(isAt(b, place)) - Number(isAt(a, place)))
    return ordered.map((each) => ({
      series: each,
      curve: curveOf(
        each,
        isAt(each, place)
          ? (curves.find(([name]) => name === each.name)?.[1] ?? each.name)
          : (each.evaluation ?? each.split),
      ),
    }))
  }, [data, curves, place])
  return (
    <Plot
      title={title}
      curves={useMemo(() => shown.map(({ curve }) => curve), [shown])}
      sync={run}
      onStep={(step, index) => {
        const isThere = ({ series }: (typeof shown)[number]) => series.steps.includes(step)
        const pointed = index === undefined ? undefined : shown[index]
        const at =
          (pointed !== undefined && isThere(pointed) ? pointed : shown.find(isThere))?.series ??
          place
        void navigate({
          to: '/runs/$run/$split/$step',
          params: { run, split: at.split, step },
          search: at.evaluation === undefined ? {} : { evaluation: at.evaluation },
        })
      }}
    />
  )
}

function isAt({ split, evaluation }: Series, place: SeriesPlace): boolean {
  return split === place.split && evaluation === place.evaluation
}

/** Everything that the last step measured; each can be plotted. */
function AllNumbers({ run, place }: { readonly run: string; readonly place: MeasuredPlace }) {
  const { q = '', plot = [] } = route.useSearch()
  const navigate = route.useNavigate()
  const query = useNumbers(run, place)
  const toggle = (name: string) => {
    const changed = plot.includes(name) ? plot.filter((each) => each !== name) : [...plot, name]
    void navigate({
      replace: true,
      resetScroll: false,
      search: (kept) => given({ ...kept, plot: changed.length === 0 ? undefined : changed }),
    })
  }
  return (
    <section className="stack" aria-label="All metrics">
      <div className="head">
        <h2>All metrics of step {place.steps.at(-1)}</h2>
        <input
          className="push"
          type="search"
          data-search
          aria-label="Search metrics"
          placeholder="search"
          value={q}
          onChange={({ target }) =>
            void navigate({
              replace: true,
              resetScroll: false,
              search: (kept) =>
                given({ ...kept, q: target.value === '' ? undefined : target.value }),
            })
          }
        />
      </div>
      <Answer query={query} what="the metrics">
        {({ values, timing }) => {
          const all = Object.entries({ ...values, ...timing })
          const shown = all.filter(([name]) => name.toLowerCase().includes(q.toLowerCase()))
          return (
            <Grid
              label="Metrics"
              rows={q === '' ? shown.filter(([name]) => isGeneral(name)) : shown}
              keyOf={([name]) => name}
              empty="No metric matches."
              columns={[
                {
                  title: 'metric',
                  width: 'minmax(0, 3fr)',
                  cell: ([name]) => <span className="mono wrap">{name}</span>,
                },
                {
                  title: 'value',
                  width: 'minmax(80px, 1fr)',
                  end: true,
                  cell: ([, value]) => formatNumber(value),
                },
                {
                  title: 'curve',
                  width: '80px',
                  end: true,
                  cell: ([name]) => (
                    <button
                      type="button"
                      className="plain"
                      aria-pressed={plot.includes(name)}
                      onClick={() => toggle(name)}
                    >
                      {plot.includes(name) ? 'remove' : 'plot'}
                      <span hidden> {name}</span>
                    </button>
                  ),
                },
              ]}
            />
          )
        }}
      </Answer>
      {q === '' ? (
        <p className="small muted">Those of single tags are left out; search to see them.</p>
      ) : null}
    </section>
  )
}

/** Not the numbers of one tag of tasks, of which a run may have hundreds. */
function isGeneral(name: string): boolean {
  return !name.startsWith('env/') || name.startsWith('env/all/')
}

function Checkpoints({ checkpoints }: { readonly checkpoints: RunAnswer['checkpoints'] }) {
  return (
    <section className="stack" aria-label="Checkpoints">
      <h2>Checkpoints</h2>
      <Grid
        label="Checkpoints"
        rows={checkpoints}
        keyOf={({ name }) => name}
        empty=""
        columns={[
          { title: 'after step', width: '90px', cell: ({ step }) => step },
          {
            title: 'name',
            width: 'minmax(0, 1fr)',
            cell: ({ name, final }) => (
              <>
                <span className="mono">{name}</span>{' '}
                {final ? <span className="badge good">final</span> : null}
              </>
            ),
          },
          {
            title: 'kinds',
            width: 'minmax(0, 200px)',
            wideOnly: true,
            cell: ({ kinds }) => kinds.join(', '),
          },
        ]}
      />
    </section>
  )
}
