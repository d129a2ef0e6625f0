import { promptIds, type ParsedReply, type ReplyDelta, type ToolSpec } from '@tiltyard/core'
import { splitAtMarkers, encodeSegments } from '@tiltyard/core/rendering'
import { describe, expect, test } from 'vitest'

import { qwenRenderer, type LayoutName } from '../src/index.ts'
import { tokenizer } from './support.ts'

const tools: readonly ToolSpec[] = [
  {
    name: 'find_order',
    parameters: {
      type: 'object',
      properties: {
        order: { type: 'integer' },
        zip: { type: 'string' },
        paid: { type: 'boolean' },
        day: { type: 'integer' },
      },
    },
  },
]

const xml = qwenRenderer({ layout: 'qwen3_5', tokenizer, thinking: false })
const json = qwenRenderer({ layout: 'qwen3_instruct_2507', tokenizer })

function sampled(text: string): Int32Array {
  return Int32Array.from(
    encodeSegments(tokenizer, splitAtMarkers(tokenizer, text)).flatMap((chunk) =>
      chunk.type === 'tokens' ? [...chunk.ids] : [],
    ),
  )
}

function parse(text: string, layout: LayoutName = 'qwen3_5'): ParsedReply {
  const renderer = layout === 'qwen3_5' ? xml : json
  return renderer.parse(sampled(text), {
    tools,
    stop: text.endsWith('<|im_end|>') ? 'stop' : 'length',
  })
}

function xmlCall(body: string): string {
  return `<tool_call>\n<function=find_order>\n${body}</function>\n</tool_call><|im_end|>`
}

describe('what the model wrote is kept', () => {
  test('digits beyond 2^53 reach the tool, the record and the next prompt', () => {
    for (const [renderer, text] of [
      [xml, xmlCall('<parameter=order>\n9007199254740993\n</parameter>\n')],
      [
        json,
        '<tool_call>\n{"name": "find_order", "arguments": {"order": 9007199254740993}}\n</tool_call><|im_end|>',
      ],
    ] as const) {
      const { message } = renderer.parse(sampled(text), { tools, stop: 'stop' })
      expect(message.toolCalls).toMatchObject([{ arguments: { order: '9007199254740993' } }])
      const again = renderer.prompt({ messages: [{ role: 'user', content: '?' }, message] })
      expect(tokenizer.decode(promptIds(again))).toContain(text)
    }
  })

  test('a rendered call stands as it was written: spacing, order, spelling of values', () => {
    for (const [renderer, text] of [
      [xml, xmlCall('<parameter=paid>\ntrue\n</parameter>\n<parameter=zip>inline</parameter>\n')],
      [
        json,
        '<tool_call>\n{"name": "find_order", "arguments": {"zip":"1",  "paid":true}}\n</tool_call><|im_end|>',
      ],
    ] as const) {
      const { message } = renderer.parse(sampled(text), { tools, stop: 'stop' })
      const again = renderer.prompt({ messages: [{ role: 'user', content: '?' }, message] })
      expect(tokenizer.decode(promptIds(again))).toContain(text)
    }
  })

  test('arguments named like object internals are plain arguments', () => {
    const { message } = parse(xmlCall('<parameter=__proto__>\n1\n</parameter>\n'))
    const call = message.toolCalls![0]!
    expect('arguments' in call && Object.entries(call.arguments)).toEqual([['__proto__', '1']])
  })

  test('a value that doesn’t fit its type is handed on, beside those that do', () => {
    const { message } = parse(
      xmlCall('<parameter=day>\n2026-01-15\n</parameter>\n<parameter=zip>\n1\n</parameter>\n'),
    )
    expect(message.toolCalls).toMatchObject([{ arguments: { day: '2026-01-15', zip: '1' } }])
  })
})

describe('a call with a name but without readable arguments is answered under its id', () => {
  test.each<[LayoutName, string, string, RegExp]>([
    ['qwen3_5', xmlCall('zip: 1\n'), '\nzip: 1\n', /^stray_text: write each argument/],
    [
      'qwen3_instruct_2507',
      '<tool_call>\n{"name": "find_order", "arguments": [1]}\n</tool_call><|im_end|>',
      '[1]',
      /^arguments_not_object: .*a list/,
    ],
    [
      'qwen3_instruct_2507',
      '<tool_call>\n{"name": "find_order", "arguments": 3}\n</tool_call><|im_end|>',
      '3',
      /^arguments_not_object: .*a number/,
    ],
    [
      'qwen3_instruct_2507',
      '<tool_call>\n{"name": "find_order", "arguments": {"q": }\n</tool_call><|im_end|>',
      '{"q":',
      /^invalid_json: /,
    ],
  ])('%s: %j', (layout, text, rawArguments, error) => {
    const { message, malformed } = parse(text, layout)
    expect(message.toolCalls).toEqual([
      { id: 'call_0', name: 'find_order', rawArguments, error: expect.stringMatching(error) },
    ])
    expect(malformed).toEqual([])
  })

  test('and stands in the next prompt as it was written', () => {
    const { message } = parse(xmlCall('zip: 1\n'))
    const again = xml.prompt({ messages: [{ role: 'user', content: '?' }, message] })
    expect(tokenizer.decode(promptIds(again))).toContain(xmlCall('zip: 1\n'))
  })
})

test('call markup without a name is malformed, whole, and no call', () => {
  const text = 'Look.\n<tool_call>\n<function={{ f }}>\n</function>\n</tool_call>\nok<|im_end|>'
  const { message, malformed, trailing } = parse(text)
  expect(message).toEqual({ role: 'assistant', content: 'Look.' })
  expect(malformed).toEqual([
    {
      error: 'invalid_function_name',
      raw: '<tool_call>\n<function={{ f }}>\n</function>\n</tool_call>',
    },
  ])
  expect(trailing).toBe('ok')
})

test('spans label every character', () => {
  const renderer = qwenRenderer({ layout: 'qwen3_5', tokenizer })
  const text =
    'hm\n</think>\n\nOk.\n\n<tool_call>\n<function=find_order>\n</function>\n</tool_call>\n<|im_end|>'
  expect(renderer.parse(sampled(text), { tools, stop: 'stop' }).spans).toEqual([
    { kind: 'reasoning', text: 'hm\n' },
    { kind: 'markup', text: '</think>' },
    { kind: 'text', text: '\n\nOk.\n\n' },
    { kind: 'call', text: '<tool_call>\n<function=find_order>\n</function>\n</tool_call>' },
    { kind: 'text', text: '\n' },
    { kind: 'markup', text: '<|im_end|>' },
  ])
})

describe('a stream gives what is sure, at once', () => {
  test('text as it comes, white space when more follows', () => {
    expect(deltas(['It', ' is', '  ', 'packed', '.\n', '<|im_end|>'])).toEqual([
      ['It'],
      [' is'],
      [],
      ['  packed'],
      ['.'],
      [],
      [],
    ])
  })

  test('a tag that may begin is held back until it is none', () => {
    expect(deltas(['a <', 'b> c'])).toEqual([['a'], [' <b> c'], []])
    expect(deltas(['Wrap it in <tool', '_call> tags'])).toEqual([
      ['Wrap it in'],
      [' <tool_call> tags'],
      [],
    ])
  })

  test('a call when it is whole, before the reply is', () => {
    const call =
      '<tool_call>\n<function=find_order>\n<parameter=zip>\n07040\n</parameter>\n</function>'
    expect(deltas([call.slice(0, 60), call.slice(60), '\n</tool_call>'])).toEqual([
      [],
      ['call_0 find_order', '{"zip":"07040"}'],
      [],
      [],
    ])
  })

  test('characters when their last byte is there', () => {
    const stream = xml.stream({ tools, stop: 'stop' })
    const ids = tokenizer.encode('é')
    expect(stream.push(ids.subarray(0, 1))).toEqual([])
    expect(stream.push(ids.subarray(1))).toEqual([{ type: 'text', text: 'é' }])
  })
})

test('a long reply costs its length, not its square', () => {
  // 200,000 tokens in pieces of one: a parser that reads again from the start would take minutes.
  const value = 'x > y\n'.repeat(20_000)
  const ids = sampled(
    `${'word '.repeat(16_000)}\n\n${xmlCall(`<parameter=zip>\n${value}</parameter>\n`)}`,
  )
  const stream = xml.stream({ tools, stop: 'stop' })
  let given = 0
  for (let at = 0; at < ids.length; at += 64) given += stream.push(ids.subarray(at, at + 64)).length
  const { reply } = stream.end('stop')
  expect(given).toBeGreaterThan(1_000)
  expect(reply.message.toolCalls).toMatchObject([{ arguments: { zip: value.slice(0, -1) } }])
})

function shown(delta: ReplyDelta): string {
  return delta.type === 'call' ? `${delta.id} ${delta.name}` : delta.text
}

function deltas(pieces: readonly string[]): readonly (readonly string[])[] {
  const stream = xml.stream({ tools, stop: 'stop' })
  const given = pieces.map((piece) => stream.push(sampled(piece)))
  return [...given, stream.end('stop').deltas].map((list) => list.map(shown))
}
