import { generalCategory } from './properties.ts'
import type { CodePointSet } from './ranges.ts'

/**
 * Assigned after Unicode 9 with a combining class, a decomposition or a part in one. The native tokenizers normalize by
 * Unicode 9, where these are unassigned and stand alone.
 */
const assignedLater: CodePointSet = [
  0x7fd, 0x7fe, 0x897, 0x8a0, 0x8ca, 0x8d4, 0x9fe, 0x9ff, 0xc3c, 0xc3d, 0xd3b, 0xd3d, 0xeba, 0xebb,
  0x1715, 0x1716, 0x1abf, 0x1aec, 0x1df6, 0x1dfb, 0xa82c, 0xa82d, 0x105c9, 0x105ca, 0x105d2,
  0x105d3, 0x105da, 0x105db, 0x105e4, 0x105e5, 0x10d24, 0x10d28, 0x10d69, 0x10d6e, 0x10eab, 0x10ead,
  0x10efa, 0x10f00, 0x10f46, 0x10f51, 0x10f82, 0x10f86, 0x11070, 0x11071, 0x1133b, 0x1133c, 0x11380,
  0x113d1, 0x1145e, 0x1145f, 0x11839, 0x1183b, 0x11930, 0x11944, 0x119e0, 0x119e1, 0x11a34, 0x11a35,
  0x11a47, 0x11a48, 0x11a99, 0x11a9a, 0x11d42, 0x11d43, 0x11d44, 0x11d46, 0x11d97, 0x11d98, 0x11f41,
  0x11f43, 0x1611e, 0x16130, 0x16d63, 0x16d6b, 0x16ff0, 0x16ff2, 0x1e08f, 0x1e090, 0x1e130, 0x1e137,
  0x1e2ae, 0x1e2af, 0x1e2ec, 0x1e2f0, 0x1e4ec, 0x1e4f0, 0x1e5ee, 0x1e5f0,
]

/**
 * Canonical composition (NFC) as the native tokenizers do it. JavaScript knows newer characters; those, and the ones still
 * unassigned in our tables, are left as they are and cut the text, which is what an unassigned character does.
 */
export function pinnedNfc(): (text: string) => string {
  const alone = characterClass([...assignedLater, ...generalCategory('Cn')!])
  const cut = new RegExp(`(${alone})`, 'u')
  return (text) => {
    // Nothing below U+0300 composes or is reordered.
    if (!/[\u0300-\uFFFF]/.test(text)) return text
    if (!cut.test(text)) return text.normalize('NFC')
    return text
      .split(cut)
      .map((part, index) => (index % 2 === 1 ? part : part.normalize('NFC')))
      .join('')
  }
}

function characterClass(set: CodePointSet): string {
  let ranges = ''
  for (let at = 0; at < set.length; at += 2) {
    ranges += `${escape(set[at]!)}-${escape(set[at + 1]! - 1)}`
  }
  return `[${ranges}]`
}

function escape(point: number): string {
  return `\\u{${point.toString(16)}}`
}
