import type { JsonSchema, JsonValue, ToolSpec } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { parsePythonLiteral } from '../src/parse/python-literal.ts'
import { typedValue } from '../src/parse/typed-value.ts'

function typed(schema: JsonSchema, text: string, defs: JsonSchema = {}): JsonValue {
  const parameters = { type: 'object', properties: { p: schema }, $defs: defs }
  return typedValue(text, { name: 't', parameters }, 'p')
}

describe('a value takes the type that the schema admits', () => {
  test.each<[JsonSchema, string, JsonValue]>([
    [{ type: 'string' }, 'null', 'null'],
    [{ type: ['string', 'null'] }, ' None ', null],
    [{ type: 'string', nullable: true }, 'null', null],
    [{ type: ['string', 'object'] }, '{"a": 1}', { a: 1 }],
    [{ type: ['string', 'object'] }, '[1]', '[1]'],
    [{ type: ['string', 'array'] }, "['a']", "['a']"],
    [{ type: ['string', 'integer'] }, '5', '5'],
    [{ type: 'boolean' }, 'TRUE', true],
    [{ type: 'boolean' }, '1', '1'],
    [{ type: 'integer' }, '+5', 5],
    [{ type: 'integer' }, '-0', 0],
    [{ type: 'integer' }, '2.50', 2.5],
    [{ type: 'integer' }, '1e400', '1e400'],
    [{ type: 'integer' }, '9007199254740991', 9007199254740991],
    [{ type: 'integer' }, '9007199254740993', '9007199254740993'],
    [{ type: 'integer' }, '1,000', '1,000'],
    [{ type: 'number' }, '.5', 0.5],
    [{ type: 'number' }, '0x10', '0x10'],
    [{ type: 'object' }, 'null', null],
    [{ type: 'object' }, '"text"', 'text'],
    [{ type: 'object' }, '"{\'a\': True}"', { a: true }],
    [{ type: 'array' }, '(1, 2)', '(1, 2)'],
    [{ type: 'array' }, '[9007199254740993]', ['9007199254740993']],
    [{}, '[1]', [1]],
    [{}, "{'a': 1}", "{'a': 1}"],
    [{ properties: { a: {} } }, '{"a": 1}', { a: 1 }],
    [{ items: {} }, '[1]', [1]],
    [{ enum: [null, 3] }, '3', 3],
    [{ oneOf: [{ type: 'boolean' }, { type: 'integer' }] }, 'false', false],
    [{ oneOf: [{ type: 'boolean' }, { type: 'integer' }] }, '4', 4],
    [{ $ref: '#/$defs/missing' }, '4', '4'],
    [{ $ref: 'elsewhere.json' }, '4', '4'],
  ])('%j: %s', (schema, text, value) => {
    expect(typed(schema, text)).toStrictEqual(value)
  })

  test('references may form a graph or a cycle', () => {
    const defs: JsonSchema = {
      A: { anyOf: [{ $ref: '#/$defs/B' }, { $ref: '#/$defs/B' }, { $ref: '#/$defs/C' }] },
      B: { anyOf: [{ $ref: '#/$defs/C' }, { $ref: '#/$defs/C' }] },
      C: { type: 'integer' },
      Self: { allOf: [{ $ref: '#/$defs/Self' }] },
      'a/b': { type: 'boolean' },
    }
    expect(typed({ $ref: '#/$defs/A' }, '4', defs)).toBe(4)
    expect(typed({ $ref: '#/$defs/Self' }, '4', defs)).toBe('4')
    expect(typed({ $ref: '#/$defs/a~1b' }, 'true', defs)).toBe(true)
  })

  test('undeclared parameters are text, unless additionalProperties says what they are', () => {
    expect(typedValue('4', tool(false), 'p')).toBe('4')
    expect(typedValue('4', tool({ type: 'integer' }), 'p')).toBe(4)
    expect(typedValue('4', undefined, 'p')).toBe('4')
    expect(typedValue('4', tool({ type: 'integer' }), '__proto__')).toBe(4)
  })
})

describe('Python literals are read, never evaluated', () => {
  test.each<[string, JsonValue]>([
    ["{'a': True, 'b': None, 'c': ('x',), 1: [1, 2,]}", { a: true, b: null, c: ['x'], 1: [1, 2] }],
    ['("one")', 'one'],
    ['()', []],
    ['[1, -2.5, 1e3, .5]', [1, -2.5, 1000, 0.5]],
    [String.raw`'it\'s \x41\u00e9\n'`, "it's Aé\n"],
    ['[9007199254740993]', ['9007199254740993']],
  ])('%s', (text, value) => {
    expect(parsePythonLiteral(text)).toStrictEqual(value)
  })

  test.each([
    '{1}',
    '[1 2]',
    "{'a'}",
    '[a]',
    'f(1)',
    '[1',
    "'open",
    '1 + 1',
    '{[]: 1}',
    '',
    '[1,,2]',
  ])('%s is none', (text) => {
    expect(parsePythonLiteral(text)).toBeUndefined()
  })

  test('nesting without end is none, not a crash', () => {
    expect(parsePythonLiteral('['.repeat(100_000))).toBeUndefined()
  })
})

function tool(extra: JsonValue): ToolSpec {
  return { name: 't', parameters: { type: 'object', additionalProperties: extra } }
}
