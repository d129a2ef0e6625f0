import type { Training } from '@tiltyard/train'

import { plot, type Point } from '../output/plot.ts'
import { beforeAndAfter } from './before-after.ts'

export interface SummaryOptions {
  readonly training: Training
  /** Path of the recipe, for what to type next. */
  readonly recipe: string
  /** The place that the person named; undefined: the recipe's. */
  readonly index: string | undefined
  readonly end: 'completed' | 'interrupted'
  readonly columns: number
}

/** What a person sees when a run is over: the reward's curve, a task before and after, where it all lies, what to type next. */
export async function summarize({
  training,
  recipe,
  index: place,
  end,
  columns,
}: SummaryOptions): Promise<readonly string[]> {
  const { index, run } = training.config
  const { metrics } = await index.run(run)
  const points = (split: 'train' | 'eval', name: string): readonly Point[] =>
    metrics.flatMap(({ split: of, step, values }) => {
      const value = values[name]
      return of === split && typeof value === 'number' ? [{ x: step, y: value }] : []
    })
  const curve = plot(
    points('train', 'env/all/reward/total'),
    points('eval', 'groups/passed_frac'),
    {
      title: 'reward of each step (·) and success on evaluated tasks (●)',
      xLabel: 'step',
      yRange: [0, 1],
      width: Math.min(columns, 100),
    },
  )
  const compared = await beforeAndAfter(index, run, Math.min(columns, 120))
  const at = place === undefined ? '' : ` --index ${quoted(place)}`
  const resume =
    end === 'completed'
      ? []
      : [`go on:           npx tiltyard train ${recipe} --resume --run ${run}${at}`]
  return [
    '',
    ...curve,
    ...(compared.length === 0 ? [] : ['', ...compared]),
    '',
    `the run lies in  ${index.name}, as ${run}`,
    ...resume,
    `its numbers:     npx tiltyard index metrics ${run}${at}`,
    `its episodes:    npx tiltyard index show ${run}${at}`,
    `evaluate it:     npx tiltyard eval ${recipe} --run ${run}${at}`,
  ]
}

/** For a shell: a place may hold what it would take for its own, such as `?` and `&`. */
function quoted(place: string): string {
  return /^[\w./:@%+-]+$/.test(place) ? place : `'${place.replaceAll("'", String.raw`'\''`)}'`
}
