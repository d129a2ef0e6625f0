import { TiltyardError, type Conversation, type Renderer } from '@tiltyard/core'
import { byteTokenizer } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import {
  qwenImageTokens,
  qwenLayoutOf,
  qwenRenderer,
  qwenRendererFromTemplate,
  templateMismatch,
  type LayoutName,
  type QwenRendererOptions,
} from '../src/index.ts'
import { tokenizer } from './support.ts'

const user = { role: 'user', content: 'hi' } as const
const image = {
  type: 'image',
  format: 'png',
  data: new Uint8Array(4),
  width: 224,
  height: 224,
} as const

describe('a wrong option is an error that says what to do', () => {
  test.each<[string, Partial<QwenRendererOptions>, RegExp]>([
    ['an unknown layout', { layout: 'qwen4' as LayoutName }, /layout/],
    ['an unknown key', { thinkin: true } as never, /did you mean "thinking"/],
    [
      'thinking where replies never think',
      { layout: 'qwen3_coder', thinking: true },
      /never thinks/,
    ],
    [
      'no thinking where they always do',
      { layout: 'qwen3_thinking_2507', thinking: false },
      /always/,
    ],
    ['keeping blocks where there is no such option', { preserveThinking: true }, /qwen3_6/],
    ['effort where there is no such option', { reasoningEffort: 'low' }, /qwen3_8 has/],
    [
      'an effort that the template refuses',
      { layout: 'qwen3_8', reasoningEffort: 'high' as 'low' },
      /reasoningEffort/,
    ],
    ['something that is no tokenizer', { tokenizer: {} as never }, /loadTokenizer/],
    [
      'the tokenizer of another family',
      { tokenizer: byteTokenizer(['<|eot_id|>']) },
      /lacks the markers .*<\|im_start\|>/,
    ],
  ])('%s', (_, options, message) => {
    const make = () => qwenRenderer({ layout: 'qwen3_5', tokenizer, ...options })
    expect(make).toThrow(message)
    expect(() => make()).toThrow(expect.toSatisfy((error) => TiltyardError.is(error, 'CONFIG')))
  })

  test('template arguments too', () => {
    expect(() => fromTemplate('qwen3_7', {})).toThrow(/did you mean "qwen3/)
    expect(() => fromTemplate('qwen3', { enabel_thinking: true })).toThrow(
      /did you mean "enable_thinking"/,
    )
  })
})

describe('a conversation that the template refuses is refused', () => {
  test.each<[string, LayoutName, Conversation, RegExp]>([
    ['no message', 'qwen3', { messages: [] }, /no message/],
    [
      'no user message',
      'qwen3_5',
      { messages: [{ role: 'system', content: 's' }] },
      /user message/,
    ],
    [
      'only user messages that look like tool results',
      'qwen3_6',
      { messages: [{ role: 'user', content: ' <tool_response>x</tool_response>\n' }] },
      /user message/,
    ],
    [
      'a later system message',
      'qwen3_8',
      { messages: [user, { role: 'system', content: 's' }] },
      /messages\.1: .*at the beginning/,
    ],
    [
      'a tool result first',
      'qwen3_coder',
      { messages: [{ role: 'tool', toolCallId: 'c', content: 'r' }, user] },
      /tool result/,
    ],
    [
      'an image without a place',
      'qwen3',
      { messages: [{ role: 'user', content: [image] }] },
      /qwen3_vl/,
    ],
    [
      'an image in the system message',
      'qwen3_5',
      { messages: [{ role: 'system', content: [image] }, user] },
      /no image/,
    ],
  ])('%s', (_, layout, conversation, message) => {
    const renderer = qwenRenderer({ layout, tokenizer })
    expect(() => renderer.prompt(conversation)).toThrow(message)
  })
})

test('a way to train that the layouts can’t express is refused by name', () => {
  const renderer = qwenRenderer({ layout: 'qwen3', tokenizer })
  const reply = { role: 'assistant', content: 'yes' } as const
  const train = () => renderer.supervised({ messages: [user, reply] }, 'all_messages' as never)
  expect(train).toThrow(/unknown mode "all_messages".*all_assistant_messages/)
})

test('the fingerprint tells options apart, and tokenizers, and nothing else', () => {
  const options: Partial<QwenRendererOptions>[] = [
    {},
    { layout: 'qwen3_6' },
    { thinking: false },
    { preserveThinking: false },
    { reasoningEffort: 'low' },
    { addVisionId: true },
    { tools: 'bare' },
    { history: 'keep' },
    { markers: 'naive' },
    { imageTokens: () => 64 },
    { tokenizer: byteTokenizer([...tokenizer.markers.keys(), '<|more|>']) },
  ]
  expect(new Set(options.map(fingerprint)).size).toBe(options.length)
  expect(fingerprint({ thinking: true, reasoningEffort: 'xhigh', preserveThinking: true })).toBe(
    fingerprint({}),
  )
})

test('an image takes the tokens that Qwen3-VL gives it', () => {
  expect(qwenImageTokens(224, 224)).toBe(64)
  expect(qwenImageTokens(224, 150)).toBe(70)
  expect(qwenImageTokens(300, 400)).toBe(108)
  expect(qwenImageTokens(10_000, 10_000)).toBe(16_384)
})

test('models are known by their exact names', () => {
  expect(qwenLayoutOf('Qwen/Qwen3-8B')).toBe('qwen3')
  expect(qwenLayoutOf('Qwen3-30B-A3B-Instruct-2507')).toBe('qwen3_instruct_2507')
  expect(qwenLayoutOf('Qwen/Qwen3.6-27B')).toBe('qwen3_6')
  expect(qwenLayoutOf('me/Qwen3-8B-tuned')).toBeUndefined()
})

test('a template that was revised is noticed where its hash is known', () => {
  expect(templateMismatch('qwen3', '{{ messages }}')).toMatch(/a55ee1b1/)
  expect(templateMismatch('qwen2_5', '{{ messages }}')).toBeUndefined()
})

function fromTemplate(template: string, options: Readonly<Record<string, boolean>>): Renderer {
  return qwenRendererFromTemplate({ template, options, tokenizer })
}

function fingerprint(options: Partial<QwenRendererOptions>): string {
  return qwenRenderer({ layout: 'qwen3_8', tokenizer, ...options }).fingerprint
}
