import { useEffect, useRef } from 'react'
import UPlot from 'uplot'

import type { Series } from '../../src/api/answers.ts'
import { formatNumber, formatTick } from '../format.ts'
import { useShownTheme } from '../theme.ts'

export interface Curve {
  readonly label: string
  readonly steps: readonly number[]
  readonly values: readonly (number | null)[]
  readonly dashed?: boolean
  /** Points alone, without a line. */
  readonly points?: boolean
}

export interface PlotProps {
  readonly title: string
  readonly curves: readonly Curve[]
  readonly height?: number
  /** A click on a step. */
  readonly onStep?: (step: number, curve: number | undefined) => void
  /** Plots of one page point at the same step. */
  readonly sync?: string
}

// Told apart by most eyes, on both grounds.
const colors = {
  light: ['#2f6fd0', '#c8612a', '#1c8a63', '#9a4fb5', '#a67c00', '#c23b6b', '#3f8fa8', '#6b7280'],
  dark: ['#6ea8fe', '#f0955f', '#4fc995', '#c68ae0', '#e0b94a', '#f07ba3', '#6cc3dc', '#a3abb7'],
}
const ground = {
  light: { axis: '#5a606a', line: '#e2dfd8' },
  dark: { axis: '#a3abb7', line: '#32373f' },
}

/** Curves over steps. What a canvas shows is also said in words. */
export function Plot({ title, curves, height = 200, onStep, sync }: PlotProps) {
  const holder = useRef<HTMLDivElement>(null)
  const pick = useRef(onStep)
  useEffect(() => {
    pick.current = onStep
  })
  const theme = useShownTheme()
  const shape = JSON.stringify(curves.map(({ label, dashed, points }) => [label, dashed, points]))
  const chart = useRef<UPlot>(undefined)

  useEffect(() => {
    const element = holder.current!
    const { axis, line } = ground[theme]
    const axes = {
      stroke: axis,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
    }
    const made = new UPlot(
      {
        width: element.clientWidth,
        height,
        padding: [8, 8, 0, 0],
        scales: { x: { time: false, range: stepRange }, y: { range: valueRange } },
        cursor: {
          ...(sync === undefined ? {} : { sync: { key: sync } }),
          drag: { x: false, y: false },
          focus: { prox: 24 },
        },
        legend: { live: true },
        series: [
          { label: 'step', value: (_, value) => (value === null ? '–' : String(value)) },
          ...curves.map(({ label, dashed, points }, index) => {
            const stroke = colors[theme][index % colors[theme].length]!
            return {
              label,
              stroke,
              width: 1.75,
              ...(dashed === true ? { dash: [5, 4] } : {}),
              ...(points === true
                ? { paths: () => null, points: { show: true, size: 5, fill: stroke } }
                : { points: { show: sparse(curves[index]!), size: 6, fill: stroke } }),
              spanGaps: true,
              value: (_: UPlot, value: number | null) =>
                value === null ? '–' : formatNumber(value),
            }
          }),
        ],
        axes: [
          {
            ...axes,
            size: 34,
            values: (_, splits) =>
              splits.map((split) => (Number.isInteger(split) ? String(split) : '')),
          },
          { ...axes, size: 56, values: (_, splits) => splits.map(formatTick) },
        ],
      },
      dataOf(curves),
      element,
    )
    chart.current = made
    const clicked = () => {
      const { idx } = made.cursor
      const step = idx === null || idx === undefined ? undefined : made.data[0][idx]
      const focused = made.series.findIndex((series, index) => index > 0 && series.alpha === 1)
      if (step !== undefined) pick.current?.(step, focused > 0 ? focused - 1 : undefined)
    }
    made.over.addEventListener('click', clicked)
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height })
    })
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
      chart.current = undefined
    }
    // The curves' values come by the effect below; a new chart is for new curves or colours.
  }, [shape, theme, height, sync])

  useEffect(() => {
    chart.current?.setData(dataOf(curves))
  }, [curves])

  return (
    <figure className="plot panel">
      <figcaption>
        <h2>{title}</h2>
      </figcaption>
      <div ref={holder} className="canvas" role="img" aria-label={inWords(title, curves)} />
    </figure>
  )
}

/** A single step, too, has a place in the middle. */
function stepRange(_: UPlot, low: number, high: number): [number, number] {
  return low === high ? [low - 1, high + 1] : [low, high]
}

/** Curves that are flat stay in the middle, and say so by their ticks. */
function valueRange(_: UPlot, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1]
  const margin = low === high ? Math.abs(low) / 10 || 0.5 : (high - low) * 0.08
  return [low - margin, high + margin]
}

function sparse({ steps }: Curve): boolean {
  return steps.length < 40
}

function dataOf(curves: readonly Curve[]): UPlot.AlignedData {
  const steps = [...new Set(curves.flatMap((curve) => curve.steps))].sort((a, b) => a - b)
  const place = new Map(steps.map((step, index) => [step, index]))
  return [
    steps,
    ...curves.map((curve) => {
      const values: (number | null | undefined)[] = Array.from({ length: steps.length })
      for (const [index, step] of curve.steps.entries())
        values[place.get(step)!] = curve.values[index] ?? null
      return values
    }),
  ]
}

function inWords(title: string, curves: readonly Curve[]): string {
  const said = curves.map(({ label, steps, values }) => {
    const first = values.find((value) => value !== null)
    const last = values.findLast((value) => value !== null)
    return `${label}: from ${formatNumber(first)} at step ${steps[0] ?? 0} to ${formatNumber(last)} at step ${steps.at(-1) ?? 0}`
  })
  return `${title}. ${said.join('; ')}`
}

/** The curve of a series, under the name that tells it from the others of its plot. */
export function curveOf(series: Series, label: string): Curve {
  return { label, steps: series.steps, values: series.values, dashed: series.split === 'eval' }
}

/** A curve without axes, as wide as its cell. */
export function Spark({ values }: { readonly values: readonly (number | null)[] }) {
  const finite = values.filter((value) => value !== null)
  if (finite.length < 2) return null
  const low = Math.min(...finite)
  const span = Math.max(...finite) - low || 1
  const points = values.flatMap((value, index) =>
    value === null
      ? []
      : [
          `${((index / (values.length - 1)) * 100).toFixed(2)},${(22 - ((value - low) / span) * 20).toFixed(2)}`,
        ],
  )
  return (
    <svg className="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <polyline
        points={points.join(' ')}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  )
}
