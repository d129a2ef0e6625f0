import {
  promptIds,
  type AssistantMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type ToolSpec,
} from '@tiltyard/core'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { layoutNames, qwenRenderer, type LayoutName } from '../src/index.ts'
import { layouts } from '../src/layouts/table.ts'
import { callTags } from '../src/parse/tags.ts'
import { tokenizer } from './support.ts'

// The same cases in every run of the suite.
fc.configureGlobal({ seed: 20_261_129 })

const runs = { numRuns: 150, seed: 20_261_129 }

/** Text that the layouts keep as it is: no white space at its ends, no tag that means something to them. */
const plainText = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .map((text) =>
    text
      .normalize('NFC')
      .replaceAll('<', '‹')
      .replaceAll(/\p{Surrogate}/gu, '?'),
  )
  .map((text) => `x${text}x`)

/** Any string value: XML keeps all but what closes it. */
const stringValue = fc.string({ unit: 'binary', maxLength: 30 }).map((text) =>
  text
    .normalize('NFC')
    .replaceAll(/\p{Surrogate}/gu, '?')
    .replaceAll('</', '‹/'),
)

const jsonValue: fc.Arbitrary<JsonValue> = fc
  .jsonValue({ maxDepth: 3, noUnicodeString: false })
  .map((value) => plain(value as JsonValue))

const tool: ToolSpec = {
  name: 'act',
  parameters: {
    type: 'object',
    properties: {
      s: { type: 'string' },
      i: { type: 'integer' },
      n: { type: 'number' },
      b: { type: 'boolean' },
      ns: { type: ['string', 'null'] },
      o: { type: 'object' },
      a: { type: 'array' },
    },
  },
}

const args: fc.Arbitrary<JsonObject> = fc.record(
  {
    s: stringValue,
    i: fc.maxSafeInteger().map((value) => value + 0),
    n: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => Number(plain(value))),
    b: fc.boolean(),
    ns: fc.oneof(fc.constant(null), plainText),
    o: fc.dictionary(plainText, jsonValue, { maxKeys: 3 }).map((value) => ({ ...value })),
    a: fc.array(jsonValue, { maxLength: 3 }),
  },
  { requiredKeys: [], noNullPrototype: true },
)

function replies(layout: LayoutName): fc.Arbitrary<AssistantMessage> {
  const reasons = layouts[layout].think !== 'none'
  return fc
    .record({
      content: fc.oneof(fc.constant(''), plainText),
      reasoning: reasons ? fc.option(plainText, { nil: undefined }) : fc.constant(undefined),
      calls: fc.array(args, { maxLength: 3 }),
    })
    .map(({ content, reasoning, calls }) => ({
      role: 'assistant',
      content,
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(calls.length === 0
        ? {}
        : {
            toolCalls: calls.map((given, index) => ({
              id: `call_${index}`,
              name: 'act',
              arguments: given,
            })),
          }),
    }))
}

/** What is compared: calls without the text that they were written as. */
function meaning(message: AssistantMessage) {
  const { toolCalls = [], ...said } = message
  return {
    ...said,
    calls: toolCalls.map((call) => ({ ...call, rawArguments: undefined })),
  }
}

describe.each(layoutNames)('%s', (layout) => {
  const renderer = qwenRenderer({ layout, tokenizer })

  test('what is rendered is read back', () => {
    fc.assert(
      fc.property(replies(layout), (message) => {
        const { ids } = trained(layout, message)
        const parsed = renderer.parse(ids, { tools: [tool], stop: 'stop' })
        expect(parsed.malformed).toEqual([])
        expect(meaning(parsed.message)).toStrictEqual(meaning(message))
      }),
      runs,
    )
  })

  test('what was read is rendered again to the same tokens', () => {
    fc.assert(
      fc.property(replies(layout), (message) => {
        const { ids } = trained(layout, message)
        const { message: read } = renderer.parse(ids, { tools: [tool], stop: 'stop' })
        expect(trained(layout, read).ids).toEqual(ids)
      }),
      runs,
    )
  })

  test('no ids make it throw, and no character is lost', () => {
    const id = fc.oneof(
      fc.integer({ min: 0, max: tokenizer.vocabularySize + 3 }),
      fc.constantFrom(...tokenizer.markers.values()),
      fc.constantFrom(...tokenizer.encode('<function=act>\n<parameter=s>\n</parameter>{}":,')),
    )
    fc.assert(
      fc.property(fc.array(id, { maxLength: 120 }), fc.boolean(), (list, ended) => {
        const ids = Int32Array.from(list)
        const { spans } = renderer.parse(ids, { tools: [tool], stop: ended ? 'stop' : 'length' })
        expect(spans.map(({ text }) => text).join('')).toBe(tokenizer.decode(ids))
      }),
      runs,
    )
  })

  test('fragments of markup in any order stream to the same end, however they are cut', () => {
    const fragment = fc.constantFrom(
      ...callTags,
      '<function=act>',
      '<parameter=s>',
      '<parameter=i>',
      '<think>',
      '</think>',
      '\n',
      ' ',
      'x',
      '5',
      '{"name": "act", "arguments": {"s": 1}}',
      '{"name"',
      '{',
      '}',
      '<',
      '>',
      'act',
      '\n\n',
    )
    fc.assert(
      fc.property(
        fc.array(fragment, { maxLength: 24 }),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 40 }),
        fc.boolean(),
        (parts, cuts, ended) => {
          const ids = tokenizer.encode(parts.join(''))
          const context = { tools: [tool], stop: ended ? ('stop' as const) : ('length' as const) }
          const whole = renderer.parse(ids, context)
          for (const steps of [cuts, [1]]) {
            const stream = renderer.stream(context)
            for (let at = 0, turn = 0; at < ids.length; turn += 1) {
              const next = at + steps[turn % steps.length]!
              stream.push(ids.subarray(at, next))
              at = next
            }
            expect(stream.end(context.stop).reply).toStrictEqual(whole)
          }
        },
      ),
      runs,
    )
  })

  test('a caller’s text becomes no marker and is not lost', () => {
    const text = fc
      .array(fc.oneof(plainText, fc.constantFrom(...tokenizer.markers.keys())), { maxLength: 6 })
      .map((parts) => `x${parts.join('')}x`)
    const markers = new Set(tokenizer.markers.values())
    const count = (messages: readonly Message[]) =>
      promptIds(renderer.prompt({ messages })).filter((id) => markers.has(id)).length
    fc.assert(
      fc.property(text, (content) => {
        const messages: readonly Message[] = [
          { role: 'system', content },
          { role: 'user', content },
          { role: 'assistant', content: 'ok' },
          { role: 'tool', toolCallId: 'call_0', content },
        ]
        const harmless = messages.map((message) => ({ ...message, content: 'x' }))
        expect(count(messages)).toBe(count(harmless))
        expect(tokenizer.decode(promptIds(renderer.prompt({ messages })))).toContain(content)
      }),
      runs,
    )
  })
})

/** The ids that the model would sample for a message. */
function trained(layout: LayoutName, message: AssistantMessage): { readonly ids: Int32Array } {
  const renderer = qwenRenderer({ layout, tokenizer })
  const messages: readonly Message[] = [{ role: 'user', content: '?' }, message]
  const [row] = renderer.supervised({ messages, tools: [tool] }, 'last_assistant_message')
  const ids = row!.chunks.flatMap((chunk) => (chunk.type === 'tokens' ? [...chunk.ids] : []))
  return { ids: Int32Array.from(ids.filter((_, index) => row!.weights[index] === 1)) }
}

/** JSON as it survives printing: no negative zero, no integers beyond 2^53 (they come back as text), no lone surrogates. */
function plain(value: JsonValue): JsonValue {
  return JSON.parse(
    JSON.stringify(value, (_, member: unknown) =>
      member === 0 || (Number.isInteger(member) && !Number.isSafeInteger(member)) ? 0 : member,
    ).replaceAll(/\\ud[89a-f][0-9a-f]{2}/g, '?'),
  ) as JsonValue
}
