/**
 * Writes src/unicode/categories.ts: the general category of every code point as the native tokenizers know it (their
 * regular expressions use Oniguruma, which brings its own Unicode version). Run with `tsx scripts/unicode-categories.ts`.
 */
import { writeFileSync } from 'node:fs'

import { Tokenizer } from '@anush008/tokenizers'

const categories =
  'Cc Cf Co Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp'.split(' ')
const LIMIT = 0x110000
const BLOCK = 0x1000

/** Marks the code points that a pattern matches. Each is given twice, so that what doesn't match never stands alone. */
function mark(pattern: string, visit: (codePoint: number) => void): void {
  const definition = {
    version: '1.0',
    added_tokens: [],
    pre_tokenizer: {
      type: 'Split',
      pattern: { Regex: pattern },
      behavior: 'Isolated',
      invert: false,
    },
    model: { type: 'WordLevel', vocab: { unknown: 0 }, unk_token: 'unknown' },
  }
  const splitter = Tokenizer.fromString(JSON.stringify(definition)).getPreTokenizer()
  if (splitter === null) throw new Error('the native tokenizer has no pre-tokenizer')
  for (let base = 0; base < LIMIT; base += BLOCK) {
    if (base >= 0xd800 && base < 0xe000) continue
    const points = Array.from({ length: BLOCK }, (_, index) => base + index).filter(
      (point) => point < 0xd800 || point >= 0xe000,
    )
    const pieces = splitter.preTokenizeString(
      points.map((point) => String.fromCodePoint(point, point)).join(''),
    )
    let at = 0
    for (const [piece] of pieces) {
      const length = Array.from(piece).length
      if (length === 1) visit(points[at >> 1]!)
      at += length
    }
  }
}

const found = Array.from<unknown, string>({ length: LIMIT }, (_, point) =>
  point >= 0xd800 && point < 0xe000 ? 'Cs' : 'Cn',
)
for (const category of categories) {
  mark(`\\p{${category}}`, (point) => {
    found[point] = category
  })
}

const runs: string[] = []
for (let start = 0; start < LIMIT;) {
  let end = start
  while (end < LIMIT && found[end] === found[start]) end += 1
  runs.push(found[start]! + (end - start === 1 ? '' : (end - start).toString(36)))
  start = end
}

const lines: string[] = []
let line = ''
for (const run of runs) {
  if (line.length + run.length > 110) {
    lines.push(line)
    line = ''
  }
  line += `${run},`
}
lines.push(line.slice(0, -1))

writeFileSync(
  new URL('../src/unicode/categories.ts', import.meta.url),
  `// Written by scripts/unicode-categories.ts.

/**
 * The general category of every code point in Unicode 16, as runs from U+0000 on: two letters, then the length in base 36
 * (none: 1). Held here, not asked of the JavaScript engine, so that ids don't change with the version of Node.
 */
export const categoryRuns =
  ${lines.map((text) => `'${text}'`).join(' +\n  ')}
`,
)
