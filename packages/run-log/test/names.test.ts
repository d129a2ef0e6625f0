import { assert, configureGlobal, pre, property, string } from 'fast-check'
import { expect, test } from 'vitest'

import { decodeName, encodeName } from '../src/index.ts'

// The same names in every run of the suite.
configureGlobal({ seed: 20_261_129 })

/** What NTFS, ext4 and S3 all take, and a shell leaves alone. */
const portable =
  /^(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9_~-](?:[a-z0-9_~.-]*[a-z0-9_~-])?$/

test('F63: any name is encoded to a portable one and read back', () => {
  assert(
    property(string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (name) => {
      // Longer ones are refused; a byte takes three characters at most.
      pre(new TextEncoder().encode(name).length <= 60)
      const text = encodeName('run', name)
      expect(text).toMatch(portable)
      expect(decodeName(text)).toBe(name)
    }),
  )
})

test.each([
  ['desk-2026.v1_a', 'desk-2026.v1_a'],
  ['Desk run/1', '~44esk~20run~2f1'],
  ['..', '~2e~2e'],
  ['../../x', '~2e.~2f..~2fx'],
  ['con', '~63on'],
  ['CON', '~43~4f~4e'],
  ['nul.txt', '~6eul.txt'],
  ['step-0007', '~73tep-0007'],
  ['step-a', 'step-a'],
  ['x.', 'x~2e'],
  ['~', '~7e'],
  ['ä', '~c3~a4'],
])('%j is %s', (name, text) => {
  expect(encodeName('run', name)).toBe(text)
})

test('names that differ in case only stay different where case doesn’t count', () => {
  expect(encodeName('run', 'A').toLowerCase()).not.toBe(encodeName('run', 'a').toLowerCase())
})

test.each([
  ['', 'it is empty'],
  ['x'.repeat(201), 'it takes 201 characters as a file name, 200 fit'],
  ['\ud800', 'not well-formed'],
])('%j is refused: %s', (name, why) => {
  expect(() => encodeName('run', name)).toThrow(why)
})

test.each(['A', '~4', '~zz', '~61', 'con', '.x', 'a/b', '', '~c3'])(
  '%j is no encoded name: a foreign folder is not taken for a run',
  (text) => {
    expect(decodeName(text)).toBeUndefined()
  },
)
