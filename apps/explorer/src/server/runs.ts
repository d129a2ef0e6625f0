import { NotFoundError, type RunDetails, type RunIndex } from '@tiltyard/core'

import type { RunAnswer, RunLine, Series, SeriesPlace } from '../api/answers.ts'
import { placeName, placeOf, runLineOf } from './lines.ts'

export async function listRuns(index: RunIndex): Promise<readonly RunLine[]> {
  const runs: RunLine[] = []
  for await (const run of index.runs()) runs.push(runLineOf(run))
  return runs
}

export function showRun({
  record,
  summary,
  steps,
  metrics,
  checkpoints,
  failures,
  end,
}: RunDetails): RunAnswer {
  const places = new Map<string, SeriesPlace & { steps: number[] }>()
  for (const event of metrics) {
    const name = placeName(event)
    const place = places.get(name) ?? { ...placeOf(event), steps: [] }
    places.set(name, place)
    place.steps.push(event.step)
  }
  return {
    run: runLineOf(summary),
    record,
    places: [...places.values()],
    totals: { ...steps.at(-1)?.totals },
    checkpoints: checkpoints.map(({ step, name, training, sampling, final }) => ({
      step,
      name,
      kinds: [
        ...(training === undefined ? [] : (['training'] as const)),
        ...(sampling === undefined ? [] : (['sampling'] as const)),
      ],
      final: final === true,
    })),
    failures: failures.map(({ step, phase, error }) => ({
      phase,
      error,
      ...(step === undefined ? {} : { step }),
    })),
    ...(end === undefined
      ? {}
      : {
          end: {
            status: end.status,
            at: end.at,
            ...(end.error === undefined ? {} : { error: end.error }),
          },
        }),
  }
}

/** The named metrics, times among them, of the training and each evaluation that has them. A step measured again counts anew. */
export function seriesOf({ metrics }: RunDetails, names: readonly string[]): readonly Series[] {
  const found = new Map<
    string,
    { place: SeriesPlace; name: string; points: Map<number, number | null> }
  >()
  for (const event of metrics) {
    for (const name of names) {
      const value = event.values[name] ?? event.timing[name]
      if (value === undefined && !(name in event.values)) continue
      const key = `${placeName(event)} ${name}`
      const series = found.get(key) ?? { place: placeOf(event), name, points: new Map() }
      found.set(key, series)
      series.points.set(event.step, value ?? null)
    }
  }
  return [...found.values()].map(({ place, name, points }) => {
    const sorted = [...points].sort(([a], [b]) => a - b)
    return {
      ...place,
      name,
      steps: sorted.map(([step]) => step),
      values: sorted.map(([, value]) => value),
    }
  })
}

/** @throws NotFoundError when the step wasn't measured. */
export function numbersOf(
  { metrics, record }: RunDetails,
  { step, ...place }: SeriesPlace & { readonly step: number },
): {
  readonly values: Readonly<Record<string, number | null>>
  readonly timing: Readonly<Record<string, number | null>>
} {
  const name = placeName(place)
  const event = metrics.findLast((each) => each.step === step && placeName(each) === name)
  if (event === undefined)
    throw new NotFoundError(`run "${record.name}" has no metrics of ${name}, step ${step}`)
  return { values: event.values, timing: event.timing }
}
