import { describe, expect, test } from 'vitest'

import { makeBundle } from '../support/make-bundle.ts'
import { findUser, mistakesOf, withFindUser, type MistakenBundle } from '../support/mistakes.ts'

const bundles: readonly MistakenBundle[] = [
  {
    name: 'a tool that the module does not have, with the nearest one',
    parts: { manifest: { tools: ['find_usr'] }, module: withFindUser },
    mistakes: [
      { at: 'bundle.json:19', message: 'unknown tool "find_usr"; did you mean "find_user"?' },
    ],
  },
  {
    name: 'a tool that is listed twice',
    parts: { manifest: { tools: ['find_user', 'find_user'] }, module: withFindUser },
    mistakes: [{ at: 'bundle.json:20', message: 'tool "find_user" is listed twice' }],
  },
  {
    name: 'two tools of one name, at the module',
    parts: {
      module: { tools: [findUser, findUser], verifiers: { always: () => 1 } },
      files: { 'bundle.mjs': '// tools\nconst find_user = 1\n' },
    },
    mistakes: [{ at: 'bundle.mjs:2', message: 'two tools are called "find_user"' }],
  },
  {
    name: 'a tool name that no model may call',
    parts: {
      module: { tools: [{ ...findUser, name: 'find user' }], verifiers: { always: () => 1 } },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message: `a tool's name has 1 to 64 letters, digits, "_" and "-"; "find user" isn't one`,
      },
    ],
  },
  {
    name: 'a tool whose JSON Schema is broken',
    parts: {
      module: {
        tools: [
          { ...findUser, parameters: { type: 'object', properties: { zip: { type: 'text' } } } },
        ],
        verifiers: { always: () => 1 },
      },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message: expect.stringMatching(
          /tool "find_user": its JSON Schema is broken: .*zip.*type/,
        ) as string,
      },
    ],
  },
  {
    name: 'F11: a tool whose JSON Schema refers to itself without end',
    parts: {
      module: {
        tools: [
          {
            ...findUser,
            parameters: {
              type: 'object',
              properties: { tree: { $ref: '#/$defs/a' } },
              $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
            },
          },
        ],
        verifiers: { always: () => 1 },
      },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message: 'tool "find_user": its JSON Schema refers to itself without end, at "#/$defs/b"',
      },
    ],
  },
  {
    name: 'a tool whose parameters are no object',
    parts: {
      module: {
        tools: [{ ...findUser, parameters: { type: 'string' } }],
        verifiers: { always: () => 1 },
      },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message:
          'tool "find_user": "parameters" must be a zod object or a JSON Schema of type "object"',
      },
    ],
  },
]

describe('loadBundle names, of the tools,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })
})
