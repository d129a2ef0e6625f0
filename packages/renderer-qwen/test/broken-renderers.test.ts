import { createPrompt, tokenChunk, type Renderer, type Tokenizer } from '@tiltyard/core'
import { rendererCases } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { qwenRenderer } from '../src/index.ts'
import { tokenizer } from './support.ts'

function sound(given: Tokenizer): Renderer {
  return qwenRenderer({ layout: 'qwen3_8', tokenizer: given, thinking: false })
}

/** The mistakes of other stacks, one at a time. */
const mistakes: readonly (readonly [string, (given: Tokenizer) => Renderer, string])[] = [
  [
    'encodes a sampled reply again',
    (given) => {
      const renderer = sound(given)
      const again = (ids: Int32Array) => given.encode(given.decode(ids))
      return {
        ...renderer,
        extend: (prompt, reply, next) =>
          renderer.extend(prompt, { ...reply, ids: again(reply.ids) }, next),
      }
    },
    'goes on from exactly the ids that were there, sampled ones included',
  ],
  [
    'finds markers in what callers wrote',
    (given) =>
      qwenRenderer({ layout: 'qwen3_8', tokenizer: given, thinking: false, markers: 'naive' }),
    'makes no marker from what a caller wrote, wherever it stands',
  ],
  [
    'guesses types from what values look like',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        parse(ids, context) {
          const untyped = context.tools.map((tool) => ({
            ...tool,
            parameters: { type: 'object', additionalProperties: { type: ['number', 'boolean'] } },
          }))
          return renderer.parse(ids, { ...context, tools: untyped })
        },
      }
    },
    'keeps a string a string, whatever it looks like',
  ],
  [
    'trains the header of a reply',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        supervised: (conversation, on) =>
          renderer.supervised(conversation, on).map(({ chunks, weights }) => ({
            chunks,
            weights: weights.map((weight, index) =>
              weight === 1 || weights[index + 1] === 1 ? 1 : 0,
            ),
          })),
      }
    },
    'trains each reply whole and nothing else, from the very prompt that sampling had',
  ],
  [
    'streams text before it knows that it is no markup',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        stream(context) {
          const stream = renderer.stream(context)
          const text = given.stream()
          return {
            ...stream,
            push: (ids) => (stream.push(ids), [{ type: 'text', text: text.push(ids) }]),
          }
        },
      }
    },
    'never throws, loses no character and streams to the same end, whatever is sampled',
  ],
  [
    'throws at an id that it doesn’t know',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        parse(ids, context) {
          if (ids.some((id) => id >= given.vocabularySize)) throw new RangeError('unknown id')
          return renderer.parse(ids, context)
        },
      }
    },
    'reads any ids at all',
  ],
  [
    'renders the whole history each turn',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        extend(prompt, reply, next) {
          const extended = renderer.extend(prompt, reply, next)
          if (!('refused' in extended)) {
            for (const chunk of extended.chunks())
              if (chunk.type === 'tokens') given.encode(given.decode(chunk.ids))
          }
          return extended
        },
      }
    },
    'works over 128 turns no more than 3 times as much as one render of the whole',
  ],
  [
    'claims a history that it doesn’t keep',
    (given) => ({
      ...qwenRenderer({ layout: 'qwen3_5', tokenizer: given }),
      history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
    }),
    'goes on as it declares after a user message, and then writes what rendering again would',
  ],
  [
    'forgets its tokenizer in the fingerprint',
    (given) => ({ ...sound(given), fingerprint: 'qwen3_8' }),
    'says what it is, and has one fingerprint for one set of options and one tokenizer',
  ],
  [
    'leaves a cut reply open',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        extend: (prompt, reply) =>
          createPrompt([tokenChunk(reply.ids), tokenChunk(given.encode('\n'))], prompt),
      }
    },
    'goes on from a cut reply too, closing it',
  ],
  [
    'runs a call that was cut',
    (given) => {
      const renderer = sound(given)
      return {
        ...renderer,
        parse: (ids, context) => {
          const end = given.encode('\n</parameter>\n</function>\n')
          return renderer.parse(Int32Array.of(...ids, ...end), { ...context, stop: 'stop' })
        },
      }
    },
    'runs nothing of a cut call that the whole reply would not run',
  ],
]

describe('the cases see a renderer that', () => {
  test.each(mistakes)('%s', async (_, create, promise) => {
    expect(await failing(create)).toContain(promise)
  })
})

test('and nothing wrong with a sound one', async () => {
  expect(await failing(sound)).toEqual([])
})

async function failing(create: (given: Tokenizer) => Renderer): Promise<readonly string[]> {
  const failed: string[] = []
  for (const { name, skip, run } of rendererCases({ create, tokenizer })) {
    if (skip !== undefined) continue
    await run().catch(() => failed.push(name))
  }
  return failed
}
