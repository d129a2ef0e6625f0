import {
  createPrompt,
  isRefusal,
  promptIds,
  type Conversation,
  type Message,
  type NextInput,
  type Renderer,
} from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { qwenRenderer, type QwenRendererOptions } from '../src/index.ts'
import { tokenizer } from './support.ts'

const conversation: Conversation = { messages: [{ role: 'user', content: 'a?' }] }
const user: NextInput = { messages: [{ role: 'user', content: 'b?' }] }
const tool: NextInput = {
  messages: [{ role: 'tool', toolCallId: 'call_0', content: 'ORDER 7731 shipped' }],
}

function renderer(
  layout: QwenRendererOptions['layout'],
  options: Partial<QwenRendererOptions> = {},
) {
  return qwenRenderer({ layout, tokenizer, ...options })
}

/** Sampled ids of a text in which markers are markers. */
function sampled(text: string): Int32Array {
  const parts = text.split(/(<\|im_end\|>|<\|endoftext\|>|<\/?think>|<\/?tool_call>)/)
  return Int32Array.from(
    parts.flatMap((part) => {
      const marker = tokenizer.markers.get(part)
      return marker === undefined ? [...tokenizer.encode(part)] : [marker]
    }),
  )
}

function extend(
  subject: Renderer,
  text: string,
  next: NextInput,
  from: Conversation = conversation,
) {
  const prompt = subject.prompt(from)
  const ids = sampled(text)
  const stop = text.endsWith('<|im_end|>') ? 'stop' : 'length'
  return { prompt, ids, extended: subject.extend(prompt, { ids, stop }, next) }
}

/** What stands after the sampled ids, or why nothing does. */
function appended(subject: Renderer, text: string, next: NextInput, from?: Conversation): string {
  const { prompt, ids, extended } = extend(subject, text, next, from)
  if (isRefusal(extended)) return `refused: ${extended.refused}`
  return tokenizer.decode(promptIds(extended).subarray(prompt.length + ids.length))
}

describe('where the template would take a think block out of the history', () => {
  test.each<
    [string, QwenRendererOptions['layout'], Partial<QwenRendererOptions>, string, NextInput]
  >([
    ['reasoning, then a user message', 'qwen3', {}, '<think>\nhm\n</think>\n\nA<|im_end|>', user],
    ['an empty block, then a tool result', 'qwen3', {}, '<think>\n\n</think>\n\nA<|im_end|>', tool],
    ['a closed block, then a tool result', 'qwen3', { thinking: false }, 'A<|im_end|>', tool],
    [
      'an opened block, then a user message',
      'qwen3_thinking_2507',
      {},
      'hm\n</think>\n\nA<|im_end|>',
      user,
    ],
    ['an opened block left empty', 'qwen3_thinking_2507', {}, '\n</think>\n\nA<|im_end|>', tool],
    ['any block, then a user message', 'qwen3_5', {}, 'hm\n</think>\n\nA<|im_end|>', user],
    ['a closed block, then a user message', 'qwen3_5', { thinking: false }, 'A<|im_end|>', user],
    [
      'a block that isn’t preserved',
      'qwen3_8',
      { preserveThinking: false },
      '\n</think>\n\nA<|im_end|>',
      user,
    ],
  ])('%s: refused by default, kept on demand', (_, layout, options, text, next) => {
    expect(appended(renderer(layout, options), text, next)).toMatch(
      /^refused: the (?:template|closed)/,
    )
    expect(appended(renderer(layout, { ...options, history: 'keep' }), text, next)).toMatch(
      /^\n<\|im_start\|>user\n/,
    )
  })

  test('reasoning of an earlier reply of the turn counts too', () => {
    const subject = renderer('qwen3')
    const messages: readonly Message[] = [
      { role: 'user', content: 'a?' },
      { role: 'assistant', content: 'Looking.', reasoning: 'need it' },
      { role: 'tool', toolCallId: 'call_0', content: 'r' },
    ]
    expect(appended(subject, 'A<|im_end|>', user, { messages })).toMatch(/^refused/)
    const asked: readonly Message[] = [...messages, { role: 'user', content: 'b?' }]
    expect(appended(subject, 'A<|im_end|>', user, { messages: asked })).toMatch(
      /^\n<\|im_start\|>user/,
    )
  })

  test('a user message that looks like a tool result drops nothing', () => {
    const answer: NextInput = {
      messages: [{ role: 'user', content: '<tool_response>\nr\n</tool_response>' }],
    }
    expect(appended(renderer('qwen3_5'), 'hm\n</think>\n\nA<|im_end|>', answer)).toMatch(
      /^\n<\|im_start\|>user\n<tool_response>/,
    )
  })
})

test('tool results of one reply share a block, and a new turn follows them', () => {
  const next: NextInput = {
    messages: [
      { role: 'tool', toolCallId: 'call_0', content: ' A ' },
      { role: 'tool', toolCallId: 'call_1', content: 'B' },
      { role: 'user', content: 'c?' },
    ],
  }
  expect(appended(renderer('qwen3_8', { thinking: false }), 'x<|im_end|>', next)).toBe(
    '\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n<tool_response>\nB\n</tool_response><|im_end|>\n' +
      '<|im_start|>user\nc?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
  )
})

test('a reply that was cut is closed; one that ended with end-of-text too', () => {
  const subject = renderer('qwen3_instruct_2507')
  expect(appended(subject, 'It is', user)).toMatch(/^<\|im_end\|>\n<\|im_start\|>user\nb\?/)
  expect(appended(subject, 'It is<|endoftext|>', user)).toMatch(/^<\|im_end\|>\n/)
})

test('a stray end-of-text inside a reply stays where it was sampled', () => {
  const { prompt, ids, extended } = extend(
    renderer('qwen3_instruct_2507'),
    'a<|endoftext|>b<|im_end|>',
    tool,
  )
  if (isRefusal(extended)) throw new Error(extended.refused)
  expect([...promptIds(extended)].slice(0, prompt.length + ids.length)).toEqual([
    ...promptIds(prompt),
    ...ids,
  ])
})

test('a prompt that came back over a wire as plain chunks goes on all the same', () => {
  const subject = renderer('qwen3')
  const prompt = subject.prompt({
    messages: [
      { role: 'user', content: 'a?' },
      { role: 'assistant', content: '', reasoning: 'hm' },
      { role: 'tool', toolCallId: 'call_0', content: 'r' },
    ],
  })
  const plain = createPrompt(prompt.chunks())
  const reply = { ids: sampled('A<|im_end|>'), stop: 'stop' } as const
  expect(subject.extend(plain, reply, user)).toEqual(subject.extend(prompt, reply, user))
  const [one, two] = [plain, prompt].map((handle) => subject.extend(handle, reply, tool))
  if (isRefusal(one!) || isRefusal(two!)) throw new Error('refused')
  expect(promptIds(one!)).toEqual(promptIds(two!))
})

test('images are numbered on, over turns', () => {
  const subject = renderer('qwen3_vl', { addVisionId: true })
  const image = {
    type: 'image',
    format: 'png',
    data: new Uint8Array(1),
    width: 224,
    height: 224,
  } as const
  const prompt = subject.prompt({ messages: [{ role: 'user', content: [image] }] })
  const extended = subject.extend(
    prompt,
    { ids: sampled('A<|im_end|>'), stop: 'stop' },
    { messages: [{ role: 'user', content: [image, { type: 'text', text: '?' }] }] },
  )
  if (isRefusal(extended)) throw new Error(extended.refused)
  const text = extended
    .chunks()
    .map((chunk) => (chunk.type === 'tokens' ? tokenizer.decode(chunk.ids) : `[${chunk.tokens}]`))
    .join('')
  expect(text).toContain('Picture 1: <|vision_start|>[64]<|vision_end|><|im_end|>')
  expect(text).toContain('Picture 2: <|vision_start|>[64]<|vision_end|>?<|im_end|>')
})

test('what can never follow a reply is refused, also where the history is kept', () => {
  const subject = renderer('qwen3_5', { history: 'keep' })
  const system: NextInput = { messages: [{ role: 'system', content: 's' }] }
  expect(appended(subject, 'A<|im_end|>', system)).toMatch(/^refused: .*at the beginning/)
  const reply = { messages: [{ role: 'assistant', content: 'x' }] } as never
  expect(appended(subject, 'A<|im_end|>', reply)).toMatch(/^refused: .*sampled/)
})
