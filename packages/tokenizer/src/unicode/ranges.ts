/** A set of code points: sorted, disjoint, half-open ranges as a flat list `[start, end, start, end, …]`. */
export type CodePointSet = readonly number[]

export const CODE_POINTS = 0x110000

export function singlePoint(point: number): CodePointSet {
  return [point, point + 1]
}

export function pointsOf(text: string): CodePointSet {
  return union(Array.from(text, (char) => singlePoint(char.codePointAt(0)!)))
}

export function union(sets: readonly CodePointSet[]): CodePointSet {
  const ranges: (readonly [number, number])[] = []
  for (const set of sets) {
    for (let at = 0; at < set.length; at += 2) ranges.push([set[at]!, set[at + 1]!])
  }
  ranges.sort((a, b) => a[0] - b[0])
  const merged: number[] = []
  for (const [start, end] of ranges) {
    if (merged.length > 0 && start <= merged.at(-1)!) {
      merged[merged.length - 1] = Math.max(merged.at(-1)!, end)
    } else {
      merged.push(start, end)
    }
  }
  return merged
}

export function complement(set: CodePointSet): CodePointSet {
  const result: number[] = []
  let start = 0
  for (let at = 0; at < set.length; at += 2) {
    if (set[at]! > start) result.push(start, set[at]!)
    start = set[at + 1]!
  }
  if (start < CODE_POINTS) result.push(start, CODE_POINTS)
  return result
}
