import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import type { SeriesPlace } from '../../../src/api/answers.ts'
import { metricsOptions } from '../../api.ts'
import { formatMs, formatNumber } from '../../format.ts'
import { REWARD } from '../../metrics.ts'
import { Grid } from '../../ui/grid.tsx'
import { Answer } from '../../ui/state.tsx'
import { useRun } from './run-layout.tsx'

const names = [
  REWARD,
  'env/all/total_episodes',
  'env/all/cut',
  'env/all/sampled_tokens',
  'rollout_errors/total',
  'groups/dropped',
  'episodes/trained',
  'optim/kl_sample_train_v2',
  'time/total',
  'time/evaluation',
  'train_mean_nll',
]

interface StepRow extends SeriesPlace {
  readonly step: number
  readonly numbers: Readonly<Record<string, number | null>>
}

export function StepsPage() {
  const { name: run, places, revision, run: line } = useRun()
  const query = useQuery(metricsOptions(run, names, revision))
  return (
    <Answer query={query} what="the steps">
      {({ series }) => {
        const rows = new Map<string, StepRow & { numbers: Record<string, number | null> }>()
        const rowOf = (place: SeriesPlace, step: number) => {
          const key = `${step} ${place.split} ${place.evaluation ?? ''}`
          const row = rows.get(key) ?? { ...place, step, numbers: {} }
          rows.set(key, row)
          return row
        }
        for (const { split, evaluation, steps } of places)
          for (const step of steps) rowOf({ split, evaluation }, step)
        for (const { split, evaluation, name, steps, values } of series)
          for (const [index, step] of steps.entries())
            rowOf({ split, evaluation }, step).numbers[name] = values[index] ?? null
        // The newest first; what a step evaluates is what the step before it made.
        const sorted = [...rows.values()].sort(
          (a, b) => b.step - a.step || (a.split === b.split ? 0 : a.split === 'train' ? -1 : 1),
        )
        const number = (name: string) => (row: StepRow) => formatNumber(row.numbers[name])
        return (
          <>
            {line.status === 'running' ? (
              <p>
                Under way:{' '}
                <Link
                  to="/runs/$run/$split/$step"
                  params={{ run, split: 'train', step: line.steps }}
                >
                  step {line.steps}
                </Link>
              </p>
            ) : null}
            <Grid
              label="Steps"
              rows={sorted}
              keyOf={({ step, split, evaluation }) => `${step} ${split} ${evaluation}`}
              empty="No step is complete yet."
              columns={[
                {
                  title: 'step',
                  width: 'minmax(110px, 1.4fr)',
                  cell: ({ step, split, evaluation }) => (
                    <Link
                      data-item
                      to="/runs/$run/$split/$step"
                      params={{ run, split, step }}
                      search={evaluation === undefined ? {} : { evaluation }}
                    >
                      {split === 'train' ? `train ${step}` : `${evaluation ?? 'eval'} ${step}`}
                    </Link>
                  ),
                },
                rows.size > 0 && series.some(({ name }) => name === REWARD)
                  ? { title: 'reward', width: 'minmax(60px, 1fr)', end: true, cell: number(REWARD) }
                  : {
                      title: 'loss',
                      width: 'minmax(60px, 1fr)',
                      end: true,
                      cell: number('train_mean_nll'),
                    },
                {
                  title: 'episodes',
                  width: 'minmax(60px, 1fr)',
                  end: true,
                  wideOnly: true,
                  cell: number('env/all/total_episodes'),
                },
                {
                  title: 'trained',
                  width: 'minmax(60px, 1fr)',
                  end: true,
                  wideOnly: true,
                  cell: number('episodes/trained'),
                },
                { title: 'cut', width: 'minmax(50px, 1fr)', end: true, cell: share },
                {
                  title: 'failures',
                  width: 'minmax(60px, 1fr)',
                  end: true,
                  wideOnly: true,
                  cell: number('rollout_errors/total'),
                },
                {
                  title: 'dropped',
                  width: 'minmax(60px, 1fr)',
                  end: true,
                  wideOnly: true,
                  cell: number('groups/dropped'),
                },
                {
                  title: 'tokens',
                  width: 'minmax(60px, 1fr)',
                  end: true,
                  wideOnly: true,
                  cell: number('env/all/sampled_tokens'),
                },
                {
                  title: 'KL',
                  width: 'minmax(70px, 1fr)',
                  end: true,
                  wideOnly: true,
                  cell: number('optim/kl_sample_train_v2'),
                },
                { title: 'time', width: 'minmax(60px, 1fr)', end: true, cell: time },
              ]}
            />
          </>
        )
      }}
    </Answer>
  )
}

function share({ numbers }: StepRow): string {
  const cut = numbers['env/all/cut']
  return typeof cut === 'number' ? `${Math.round(cut * 100)} %` : '–'
}

function time({ numbers }: StepRow): string {
  const seconds = numbers['time/total'] ?? numbers['time/evaluation']
  return typeof seconds === 'number' ? formatMs(seconds * 1_000) : '–'
}
