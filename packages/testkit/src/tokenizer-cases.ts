import assert from 'node:assert/strict'

import { randomStream, type RandomStream, type Tokenizer } from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'

export interface TokenizerCasesOptions {
  /** The tokenizer, loaded. It keeps no state that a caller sees, so one serves all cases. */
  readonly create: () => Promise<Tokenizer>
  /** What decoding gives back of a text. Default: the text, or its NFC. */
  readonly restored?: (text: string, decoded: string) => boolean
  /**
   * The marker that text becomes where the vocabulary can't write it (`[UNK]`). Default: there is none, every byte can be written.
   */
  readonly unknown?: string
}

/** Texts of many kinds: what breaks tokenizers. */
const texts = [
  '',
  ' ',
  'Hello, world!',
  '  two  spaces\n\n\nthree lines\t\ttabs\r\nwindows',
  'snake_case camelCase HTTP2 v1.0.3 #W0091 07040',
  'naïve café, Straße, Ελληνικά, Кириллица, עברית, العربية, हिन्दी',
  '日本語のテキスト 한국어 中文，标点。',
  'emoji 😀 👩‍👩‍👧 🇩🇪 ☕️',
  'combining e\u0301 o\u0323\u0302 and \uFEFF\u200B\u00A0',
  '{"a": [1, 2.5, true, null], "b": "\\"q\\""}',
  "don't DON'T we'll 'tis",
  'a'.repeat(500),
  '\u0000\u0001\u007F',
]

/** What every tokenizer promises. */
export function tokenizerCases({
  create,
  restored = (text, decoded) => decoded === text || decoded === text.normalize('NFC'),
  unknown,
}: TokenizerCasesOptions): readonly ConformanceCase[] {
  const promise = (name: string, body: (tokenizer: Tokenizer) => void): ConformanceCase => ({
    name,
    run: async () => body(await create()),
  })

  return [
    promise('says what it is', (tokenizer) => {
      assert.equal(tokenizer.specVersion, 'tokenizer/1')
      assert.notEqual(tokenizer.name, '')
      assert.notEqual(tokenizer.fingerprint, '')
      assert.ok(tokenizer.vocabularySize > 0)
    }),

    {
      name: 'has one fingerprint, however often it is made',
      run: async () => {
        const [first, second] = [await create(), await create()]
        assert.equal(first.fingerprint, second.fingerprint)
      },
    },

    promise('has markers with ids of their own, which decode to their text', (tokenizer) => {
      const ids = [...tokenizer.markers.values()]
      assert.equal(new Set(ids).size, ids.length, 'two markers share an id')
      for (const [text, id] of tokenizer.markers) {
        assert.ok(id >= 0 && id < tokenizer.vocabularySize, `${text} has id ${id}`)
        assert.equal(tokenizer.decode([id]), text)
        assert.equal(new TextDecoder().decode(tokenizer.bytes(id)), text)
      }
    }),

    promise('makes no marker from text, whatever it spells', (tokenizer) => {
      const markers = new Set(tokenizer.markers.values())
      if (unknown !== undefined) markers.delete(tokenizer.markers.get(unknown) ?? -1)
      for (const marker of tokenizer.markers.keys()) {
        for (const text of [
          marker,
          ` ${marker}\n`,
          `a${marker}b`,
          marker + marker,
          marker.repeat(3),
        ]) {
          const ids = tokenizer.encode(text)
          assert.ok(!ids.some((id) => markers.has(id)), `${JSON.stringify(text)} became a marker`)
          assert.ok(restored(text, tokenizer.decode(ids)), `${JSON.stringify(text)} was lost`)
        }
      }
    }),

    promise('gives back what it encoded', (tokenizer) => {
      for (const text of texts) {
        const decoded = tokenizer.decode(tokenizer.encode(text))
        assert.ok(
          restored(text, decoded),
          `${JSON.stringify(text)} came back as ${JSON.stringify(decoded)}`,
        )
      }
    }),

    promise('keeps ids below its size, and the same each time', (tokenizer) => {
      for (const text of texts) {
        const ids = tokenizer.encode(text)
        assert.ok(ids.every((id) => id >= 0 && id < tokenizer.vocabularySize))
        assert.deepEqual(tokenizer.encode(text), ids)
      }
    }),

    promise('takes half a surrogate pair as U+FFFD, not as an error', (tokenizer) => {
      assert.deepEqual(tokenizer.encode('a\uD83Db'), tokenizer.encode('a\uFFFDb'))
      assert.deepEqual(tokenizer.encode('\uDE00'), tokenizer.encode('\uFFFD'))
    }),

    promise('decodes a stream to the same text, however it is cut', (tokenizer) => {
      const random = randomStream(1, 'tokenizer-cases')
      for (const text of texts) {
        const ids = tokenizer.encode(text)
        const whole = tokenizer.decode(ids)
        assert.equal(
          streamed(tokenizer, ids, () => 1),
          whole,
        )
        assert.equal(
          streamed(tokenizer, ids, () => 1 + random.integer(4)),
          whole,
        )
      }
    }),

    promise('holds back half a character, and ends it as U+FFFD', (tokenizer) => {
      const char = '\u{1F9EA}'
      const ids = tokenizer.encode(char)
      const bytes = Array.from(ids, (id) => [...tokenizer.bytes(id)]).flat()
      // A vocabulary may have the character whole, or not at all.
      const split = ids.length > 1 && new TextDecoder().decode(Uint8Array.from(bytes)) === char
      const stream = tokenizer.stream()
      const early = stream.push(ids.subarray(0, ids.length - 1))
      assert.ok(!early.includes('\uFFFD'), 'half a character was given out')
      if (split) assert.match(early + stream.end(), /\uFFFD/)
    }),

    promise('decodes any ids; unknown ones are nothing', (tokenizer) => {
      const random = randomStream(2, 'tokenizer-cases')
      assert.equal(tokenizer.decode([]), '')
      assert.equal(tokenizer.decode([tokenizer.vocabularySize + 7, -1]), '')
      assert.equal(tokenizer.bytes(tokenizer.vocabularySize + 7).length, 0)
      for (let round = 0; round < 50; round += 1) {
        const ids = randomIds(random, tokenizer.vocabularySize + 3)
        assert.equal(
          streamed(tokenizer, ids, () => 1 + random.integer(3)),
          tokenizer.decode(ids),
        )
      }
    }),
  ]
}

function streamed(tokenizer: Tokenizer, ids: Int32Array, step: () => number): string {
  const stream = tokenizer.stream()
  let text = ''
  for (let at = 0; at < ids.length;) {
    const next = at + step()
    text += stream.push(ids.subarray(at, next))
    at = next
  }
  return text + stream.end()
}

function randomIds(random: RandomStream, bound: number): Int32Array {
  return Int32Array.from({ length: 1 + random.integer(30) }, () => random.integer(bound))
}
