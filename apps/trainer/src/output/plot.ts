/** A point of a curve. */
export interface Point {
  readonly x: number
  readonly y: number
}

export interface PlotOptions {
  /** Characters, axis included. Default 72 × 12. */
  readonly width?: number
  readonly height?: number
  readonly title: string
  readonly xLabel: string
  /** Range of y. Default: that of the points. */
  readonly yRange?: readonly [number, number]
}

/** One curve as dots and, over it, marks of a second one. Lines of plain text. */
export function plot(
  curve: readonly Point[],
  marks: readonly Point[],
  options: PlotOptions,
): readonly string[] {
  const { width = 72, height = 12, title, xLabel } = options
  const points = [...curve, ...marks].filter(({ y }) => Number.isFinite(y))
  if (points.length === 0) return [title, '(nothing to plot yet)']
  const xs = points.map(({ x }) => x)
  const ys = points.map(({ y }) => y)
  const [yMin, yMax] = spread(options.yRange ?? [Math.min(...ys), Math.max(...ys)])
  const [xMin, xMax] = spread([Math.min(...xs), Math.max(...xs)])
  const labels = [yMax, (yMin + yMax) / 2, yMin].map((value) => value.toFixed(2))
  const margin = Math.max(...labels.map(({ length }) => length)) + 2
  const columns = Math.max(10, width - margin)
  const cells = Array.from({ length: height }, () => Array.from({ length: columns }, () => ' '))
  const put = (list: readonly Point[], mark: string) => {
    for (const { x, y } of list) {
      if (!Number.isFinite(y)) continue
      const column = Math.round(((x - xMin) / (xMax - xMin)) * (columns - 1))
      const row = Math.round(((yMax - clamp(y, yMin, yMax)) / (yMax - yMin)) * (height - 1))
      cells[row]![column] = mark
    }
  }
  put(curve, '·')
  put(marks, '●')
  const middle = Math.floor((height - 1) / 2)
  const rows = cells.map((row, index) => {
    const label =
      index === 0
        ? labels[0]!
        : index === middle
          ? labels[1]!
          : index === height - 1
            ? labels[2]!
            : ''
    return `${label.padStart(margin - 2)} ┤${row.join('')}`.trimEnd()
  })
  const [left, right] = [String(xMin), String(xMax)]
  const gap = Math.max(1, columns - left.length - right.length - xLabel.length)
  const pad = ' '.repeat(Math.floor(gap / 2))
  const axis = `${' '.repeat(margin)}${left}${pad}${xLabel}${' '.repeat(gap - pad.length)}${right}`
  return [title, ...rows, axis]
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value))
}

/** A range of no width becomes one, so that a flat curve has a place. */
function spread([low, high]: readonly [number, number]): readonly [number, number] {
  return low === high ? [low - 0.5, high + 0.5] : [low, high]
}
