import { describe, expect, test } from 'vitest'

import {
  concatIds,
  createPrompt,
  promptIds,
  randomStream,
  TiltyardError,
  tokenPrompt,
  type JsonValue,
  type Tokenizer,
} from '../src/index.ts'
import {
  argumentsText,
  continueFrom,
  encodeNaively,
  encodeSegments,
  findMarkers,
  parseExactJson,
  printJson,
  pythonNumber,
  pythonText,
  pythonTrim,
  splitAtMarkers,
  splitReply,
  templateWriter,
  toolCall,
  trimNewlines,
} from '../src/rendering/index.ts'

/** Code points are ids; two markers. */
const tokenizer = {
  name: 'points',
  markers: new Map([
    ['<end>', 0x110000],
    ['<end>>', 0x110001],
    ['<eos>', 0x110002],
  ]),
  encode: (text: string) => Int32Array.from(text, (char) => char.codePointAt(0)!),
} as unknown as Tokenizer

const markers = findMarkers(tokenizer, { end: '<end>', eos: '<eos>' })

describe('printing as templates print', () => {
  test.each<[number, string]>([
    [0, '0'],
    [-0, '0'],
    [1, '1'],
    [2.5, '2.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1e-7, '1e-07'],
    [-1.5e-10, '-1.5e-10'],
    [123456789.125, '123456789.125'],
    [9007199254740991, '9007199254740991'],
    [1e15, '1000000000000000'],
    [1e16, '1e+16'],
    [1.5e300, '1.5e+300'],
    [5e-324, '5e-324'],
  ])('the number %d is %s', (value, text) => {
    expect(pythonNumber(value)).toBe(text)
  })

  test('JSON has a space after commas and colons, and escapes only what it must', () => {
    expect(printJson({ b: [1, null, true], a: 'é <b> "q" \u0001\n\u007F', '': {} })).toBe(
      '{"b": [1, null, true], "a": "é <b> \\"q\\" \\u0001\\n\u007F", "": {}}',
    )
  })

  test.each<[JsonValue, string]>([
    ['as it is', 'as it is'],
    [true, 'True'],
    [null, 'None'],
    [['a', "it's", 'say "it\'s"', 1.5, false], `['a', "it's", 'say "it\\'s"', 1.5, False]`],
    [{ k: ['\n\\é\u200B\u{E0001}'] }, String.raw`{'k': ['\n\\é\u200b\U000e0001']}`],
  ])('as Python text %j is %s', (value, text) => {
    expect(pythonText(value)).toBe(text)
  })

  test('what Python calls white space is trimmed, and nothing else', () => {
    expect(pythonTrim('\u001F\u0085\u3000 x\uFEFF ')).toBe('x\uFEFF')
    expect(pythonTrim('\u2003\t')).toBe('')
    expect(trimNewlines('\n\n x \n')).toBe(' x ')
  })
})

describe('reading JSON without losing digits', () => {
  test.each<[string, JsonValue]>([
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', '9007199254740993'],
    ['{"a": [-12345678901234567890, 1.5e3]}', { a: ['-12345678901234567890', 1500] }],
    ['{"9007199254740993": "9007199254740993"}', { '9007199254740993': '9007199254740993' }],
    ['1e999', '1e999'],
    ['"\\\\\\" 9007199254740993"', '\\" 9007199254740993'],
    ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}') as JsonValue],
  ])('%s', (text, value) => {
    expect(parseExactJson(text)).toStrictEqual(value)
  })

  test('agrees with JSON.parse on what is JSON, for any pieces of it', () => {
    const random = randomStream(1, 'json')
    const pieces =
      '{ } [ ] : , " \\ 0 -1 12.5 1e5 1e999 9007199254740993 true null "a" "1": \n e . +'.split(' ')
    for (let round = 0; round < 20_000; round += 1) {
      const text = Array.from(
        { length: 1 + random.integer(7) },
        () => pieces[random.integer(pieces.length)]!,
      ).join('')
      expect([text, outcome(() => parseExactJson(text))]).toEqual([
        text,
        outcome(() => JSON.parse(text)),
      ])
    }
  })

  test('nesting without end is no JSON', () => {
    expect(() => parseExactJson(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).toThrow(
      SyntaxError,
    )
    expect(parseExactJson(`${'['.repeat(150)}${']'.repeat(150)}`)).toHaveLength(1)
  })
})

describe('markers come from templates alone', () => {
  test('a literal’s markers are markers, a gap’s are text', () => {
    const write = templateWriter(tokenizer)
    const segments = write`a<end>${'<end>'}b${[markers.eos, 'c']}`
    expect(segments).toEqual(['a', markers.end, '<end>', 'b', markers.eos, 'c'])
    const [chunk] = encodeSegments(tokenizer, segments)
    expect(chunk?.type === 'tokens' && [...chunk.ids]).toEqual([
      ...points('a'),
      0x110000,
      ...points('<end>b'),
      0x110002,
      ...points('c'),
    ])
  })

  test('neighbouring texts are encoded as one; markers and images part them', () => {
    const encoded: string[] = []
    const watched = {
      ...tokenizer,
      encode: (text: string) => (encoded.push(text), tokenizer.encode(text)),
    }
    const image = { type: 'image', format: 'png', data: new Uint8Array(0), tokens: 3 } as const
    const chunks = encodeSegments(watched, ['a', 'b', markers.end, '', 'c', image, 'd', ''])
    expect(encoded).toEqual(['ab', 'c', 'd'])
    expect(chunks.map(({ type }) => type)).toEqual(['tokens', 'image', 'tokens'])
  })

  test('a naive server makes markers of what text spells, also across segments', () => {
    const [chunk] = encodeNaively(tokenizer, ['x<e', 'nd>', markers.end])
    expect(chunk?.type === 'tokens' && [...chunk.ids]).toEqual([...points('x'), 0x110000, 0x110000])
  })

  test('of two markers that begin at one place the longer is found', () => {
    expect(splitAtMarkers(tokenizer, '<end>>')).toMatchObject([{ id: 0x110001 }])
  })

  test('a tokenizer of another family is refused by what it lacks', () => {
    expect(() => findMarkers(tokenizer, { start: '<start>' })).toThrow(
      expect.toSatisfy(
        (error) => TiltyardError.is(error, 'CONFIG') && /<start>/.test(error.message),
      ),
    )
  })
})

describe('replies', () => {
  test('end at the first id that ends them', () => {
    const ids = Int32Array.of(1, 2, 0x110002, 3, 0x110000)
    expect(splitReply(ids, { stop: markers.end, eos: markers.eos })).toEqual({
      ids: Int32Array.of(1, 2),
      termination: 'eos',
      rest: Int32Array.of(0x110002, 3, 0x110000),
    })
    expect(splitReply(ids, { stop: markers.end }).termination).toBe('stop')
    expect(splitReply(ids.subarray(0, 2), { stop: markers.end }).termination).toBe('length')
  })

  test('stand in the next prompt as they were sampled, closed when they were cut', () => {
    const prompt = tokenPrompt([1, 2])
    const added = encodeSegments(tokenizer, ['x'])
    const whole = continueFrom(
      prompt,
      { ids: Int32Array.of(3, 0x110000), stop: 'stop' },
      markers.end,
      added,
    )
    expect(whole.parent).toBe(prompt)
    expect([...promptIds(whole)]).toEqual([1, 2, 3, 0x110000, ...points('x')])
    const cut = continueFrom(prompt, { ids: new Int32Array(0), stop: 'length' }, markers.end, added)
    expect([...promptIds(cut)]).toEqual([1, 2, 0x110000, ...points('x')])
    expect(concatIds(cut.added.map((chunk) => (chunk as { ids: Int32Array }).ids))).toHaveLength(2)
    expect(createPrompt(cut.chunks()).length).toBe(cut.length)
  })
})

describe('arguments as text and as an object', () => {
  test('are one call; digits and spacing of the text are kept beside the values', () => {
    expect(toolCall('c', 'f', { a: 1 })).toEqual({ id: 'c', name: 'f', arguments: { a: 1 } })
    const call = toolCall('c', 'f', '{"a":9007199254740993}')
    expect(call).toEqual({
      id: 'c',
      name: 'f',
      arguments: { a: '9007199254740993' },
      rawArguments: '{"a":9007199254740993}',
    })
    expect(argumentsText(call)).toBe('{"a":9007199254740993}')
    expect(argumentsText({ id: 'c', name: 'f', arguments: { a: 1 }, rawArguments: '<a>' })).toBe(
      '{"a":1}',
    )
    expect(toolCall('c', 'f', ' ')).toEqual({ id: 'c', name: 'f', arguments: {} })
  })

  test.each(['{"city": "Os', '[1]', '"{}"', '3'])(
    '%s is a call that isn’t run and says why',
    (text) => {
      const call = toolCall('c', 'f', text)
      expect(call).toEqual({
        id: 'c',
        name: 'f',
        rawArguments: text,
        error: expect.stringMatching(/^(?:invalid_json|arguments_not_object): the arguments /),
      })
      expect(argumentsText(call)).toBe(text)
    },
  )
})

function points(text: string): readonly number[] {
  return [...tokenizer.encode(text)]
}

function outcome(read: () => unknown): string {
  try {
    read()
    return 'read'
  } catch {
    return 'refused'
  }
}
