import type { Training } from '@tiltyard/train'

import { DEFAULT_RUNS, placeOf } from '../open-index.ts'
import { plot, type Point } from '../output/plot.ts'
import { beforeAndAfter } from './before-after.ts'

export interface SummaryOptions {
  readonly training: Training
  /** Path of the recipe, for what to type next. */
  readonly recipe: string
  /** What the person typed beside it. `index` undefined: the recipe's. */
  readonly flags: TypedFlags
  readonly end: 'completed' | 'interrupted'
  readonly columns: number
}

export interface TypedFlags {
  readonly index?: string
  readonly steps?: number
  readonly seed?: number
  readonly data?: string
  readonly export?: string
}

/** What a person sees when a run is over: the reward's curve, a task before and after, where it all lies, what to type next. */
export async function summarize({
  training,
  recipe,
  flags,
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
  return [
    '',
    ...curve,
    ...(compared.length === 0 ? [] : ['', ...compared]),
    '',
    `the run lies in  ${index.name}, as ${run}`,
    ...nextCommands({ recipe, run, flags, index: index.name, end }),
  ]
}

/** What to type next, with all that it takes: a command that is copied must find the run, and go on with it as it was begun. */
export function nextCommands(about: {
  readonly recipe: string
  readonly run: string
  readonly flags: TypedFlags
  /** Name of the index that the run lies in. */
  readonly index: string
  readonly end: 'completed' | 'interrupted'
}): readonly string[] {
  const { recipe, run, flags, index, end } = about
  // A recipe's commands find its own index; those of the index know of no recipe.
  const named = flags.index ?? placeOf(index)
  const place = named === undefined || named === DEFAULT_RUNS ? '' : ` ${quoted(named)}`
  const at = place === '' ? '' : ` --index${place}`
  const typed = (names: readonly (keyof TypedFlags)[]) =>
    names
      .filter((name) => flags[name] !== undefined)
      .map((name) => ` --${name} ${quoted(String(flags[name]))}`)
      .join('')
  const path = quoted(recipe)
  const resume = `go on:           npx tiltyard train ${path} --resume --run ${run}`
  return [
    ...(end === 'completed'
      ? []
      : [`${resume}${typed(['steps', 'seed', 'index', 'data', 'export'])}`]),
    `its numbers:     npx tiltyard index metrics ${run}${at}`,
    `its episodes:    npx tiltyard index show ${run}${at}`,
    `in a browser:    npx tiltyard explore${place}`,
    `evaluate it:     npx tiltyard eval ${path} --run ${run}${typed(['index', 'data', 'export'])}`,
  ]
}

/** For a shell: a place may hold what it would take for its own, such as `?` and `&`. */
function quoted(place: string): string {
  return /^[\w./:@%+-]+$/.test(place) ? place : `'${place.replaceAll("'", String.raw`'\''`)}'`
}
