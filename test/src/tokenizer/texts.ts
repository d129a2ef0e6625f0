import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { randomStream } from '@tiltyard/core'

import { root, workspacePackages } from '../../support/workspace.ts'

const alphabets = [
  'abcdefghijklmnopqrstuvwxyz',
  'ABCXYZ',
  '0123456789',
  '  \t\n\r\n',
  '.,;:!?\'"()[]{}<>/\\|@#$%^&*-_=+~`',
  'éüñßçøåœÀÈ',
  '日本語漢字仮名かなカナ',
  '한국어',
  'приветЁ',
  'שלום',
  'مرحبا٣٤',
  'हिन्दी',
  '\u0300\u0301\u0323\u0308',
  '😀👩‍👩‍👧🇩🇪☕️',
  '\u00A0\u2003\u3000\u0085\uFEFF\u200B\u2028',
  'ſ\u212AǅǈⅧ①½²',
  '𝔸𝒷𐍈',
].map((letters) => Array.from(letters))
const words = [
  "'s",
  "'t",
  "'RE",
  "'ll",
  'HTTPServer',
  'snake_case',
  'https://x.y/z?q=1',
  '  \n\n  ',
]

/** Strings of letters, words and code points from everywhere, the same for the same seed. */
export function randomTexts(seed: number, count: number): readonly string[] {
  const random = randomStream(seed, 'parity')
  const pick = <T>(items: readonly T[]) => items[random.integer(items.length)]!
  const part = () => {
    const kind = random.integer(20)
    if (kind === 0) return anyCharacter(random.integer(0x32000))
    if (kind === 1) return anyCharacter(random.integer(0x600))
    if (kind === 2) return pick(words)
    const letters = pick(alphabets)
    return Array.from({ length: 1 + random.integer(4) }, () => pick(letters)).join('')
  }
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + random.integer(16) }, part).join(''),
  )
}

function anyCharacter(point: number): string {
  return point >= 0xd800 && point < 0xe000 ? '\uFFFD' : String.fromCodePoint(point)
}

/** What people wrote: zod's messages in forty languages, its code, and ours. One text a file. */
export function realTexts(): readonly string[] {
  const zod = dirname(createRequire(import.meta.url).resolve('zod/package.json'))
  return [
    ...filesBelow(join(zod, 'v4'), /\.js$/),
    ...workspacePackages().flatMap(({ dir }) => filesBelow(join(root, dir, 'src'), /\.tsx?$/)),
  ].map((file) => readFileSync(file, 'utf8'))
}

function filesBelow(folder: string, wanted: RegExp): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => wanted.test(file))
    .toSorted()
    .map((file) => join(folder, file))
}
