import { categoryRuns } from './categories.ts'
import { CODE_POINTS, union, type CodePointSet } from './ranges.ts'

/** White_Space, which is what `\s` means to the native tokenizers. JavaScript's `\s` lacks U+0085 and has U+FEFF. */
export const whiteSpace: CodePointSet = [
  0x09, 0x0e, 0x20, 0x21, 0x85, 0x86, 0xa0, 0xa1, 0x1680, 0x1681, 0x2000, 0x200b, 0x2028, 0x202a,
  0x202f, 0x2030, 0x205f, 0x2060, 0x3000, 0x3001,
]

/**
 * Code points of a general category (`Lu`) or of a group of them (`L`); undefined when there is no such category.
 */
export function generalCategory(name: string): CodePointSet | undefined {
  if (!/^[CLMNPSZ][a-z]?$/.test(name)) return undefined
  const ranges: number[] = []
  let start = 0
  for (const run of categoryRuns.split(',')) {
    const end = start + (run.length === 2 ? 1 : Number.parseInt(run.slice(2), 36))
    if (run.startsWith(name)) ranges.push(start, end)
    start = end
  }
  if (start !== CODE_POINTS) throw new Error(`the category table ends at ${start}`)
  return ranges.length === 0 ? undefined : union([ranges])
}
