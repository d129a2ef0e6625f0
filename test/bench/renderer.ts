/**
 * Rendering an agent's episode turn by turn, beside what servers and trainers do: the chat template by `@huggingface/jinja` over
 * the whole history, then `@huggingface/tokenizers` over the whole text. Qwen3's template as its vocabulary package brings it.
 * Prints the table of packages/renderer-qwen/README.md.
 *
 *   node --import tsx test/bench/renderer.ts
 */
import { readFileSync } from 'node:fs'

import { Template } from '@huggingface/jinja'
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers'
import { isRefusal, textOf, type Message, type RenderedPrompt, type ToolSpec } from '@tiltyard/core'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { loadTokenizer } from '@tiltyard/tokenizer'

import { vocabulary } from '../support/vocabularies.ts'

const TURNS = 128
const file = vocabulary('qwen3').found!
const config = JSON.parse(
  readFileSync(file.replace('tokenizer.json', 'tokenizer_config.json'), 'utf8'),
) as { readonly chat_template: string }
const template = new Template(config.chat_template)
const library = new LibraryTokenizer(JSON.parse(readFileSync(file, 'utf8')) as object, {})
const tokenizer = await loadTokenizer(file)
const renderer = qwenRenderer({ layout: 'qwen3', tokenizer })

const tools: readonly ToolSpec[] = ['find_order', 'list_rooms', 'get_forecast'].map((name) => ({
  name,
  description: `Answers questions of the kind ${name.replaceAll('_', ' ')}, one at a time.`,
  parameters: {
    type: 'object',
    properties: {
      key: { type: 'string', description: 'What is asked for' },
      limit: { type: 'integer', minimum: 1, maximum: 50 },
    },
    required: ['key'],
  },
}))
const head: readonly Message[] = [
  {
    role: 'system',
    content: 'You help the customers of a store. Look things up before you answer.',
  },
  { role: 'user', content: 'Please tell me about all my orders, one after the other.' },
]
const answer = (turn: number) =>
  `{"order": "#W${1000 + turn}", "status": "shipped", "items": [{"name": "water bottle", "price": 12.5}], "note": "${'left with a neighbour, '.repeat(4)}"}`
/** What the model writes at each turn: about 40 tokens. */
const sampled = (turn: number) =>
  `<think>\nNext is order ${turn}; I look it up.\n</think>\n\n<tool_call>\n{"name": "find_order", "arguments": {"key": "#W${1000 + turn}"}}\n</tool_call><|im_end|>`

const replies = Array.from({ length: TURNS }, (_, turn) => marked(sampled(turn)))
const results = Array.from({ length: TURNS }, (_, turn): Message & { role: 'tool' } => ({
  role: 'tool',
  toolCallId: `call_${turn}`,
  content: answer(turn),
}))

/** The prompts of all turns, each from the one before. */
function extendAll(): RenderedPrompt {
  let prompt = renderer.prompt({ messages: head, tools })
  for (let turn = 0; turn < TURNS; turn += 1) {
    const reply = { ids: replies[turn]!, stop: 'stop' as const }
    const next = renderer.extend(prompt, reply, { messages: [results[turn]!] })
    if (isRefusal(next)) throw new Error(next.refused)
    prompt = next
  }
  return prompt
}

interface WireMessage {
  readonly role: string
  readonly content: string
  readonly tool_calls?: readonly unknown[]
}

const wireTools = tools.map((tool) => ({ type: 'function', function: tool }))

/** The prompts of all turns, each rendered and encoded whole. */
function renderAll(): number {
  const messages: WireMessage[] = head.map(({ role, content }) => ({
    role,
    content: textOf(content),
  }))
  let length = reference(messages)
  for (let turn = 0; turn < TURNS; turn += 1) {
    const [thought] = /(?<=<think>\n)[^]*(?=\n<\/think>)/.exec(sampled(turn))!
    const call = { name: 'find_order', arguments: { key: `#W${1000 + turn}` } }
    messages.push(
      {
        role: 'assistant',
        content: `<think>\n${thought}\n</think>\n\n`,
        tool_calls: [{ function: call }],
      },
      { role: 'tool', content: answer(turn) },
    )
    length = reference(messages)
  }
  return length
}

function reference(messages: readonly WireMessage[]): number {
  const text = template.render({ messages, tools: wireTools, add_generation_prompt: true })
  return library.encode(text, { add_special_tokens: false }).ids.length
}

const start: readonly WireMessage[] = head.map(({ role, content }) => ({
  role,
  content: textOf(content),
}))
const first = {
  own: fastest(200, () => renderer.prompt({ messages: head, tools })),
  reference: fastest(50, () => reference(start)),
}
const episode = { own: fastest(20, extendAll), reference: fastest(3, renderAll) }
const parsing = fastest(20, () => {
  for (const ids of replies) renderer.parse(ids, { tools, stop: 'stop' })
})
const streaming = fastest(20, () => {
  for (const ids of replies) {
    const stream = renderer.stream({ tools, stop: 'stop' })
    for (let at = 0; at < ids.length; at += 1) stream.push(ids.subarray(at, at + 1))
    stream.end('stop')
  }
})
const replyTokens = replies.reduce((sum, ids) => sum + ids.length, 0)

const whole = extendAll()
console.log(`Qwen3, Node ${process.version}; ${TURNS} turns, ${whole.length} tokens at the end\n`)
console.log('| | this package | jinja + tokenizers | ratio |')
console.log('| --- | --- | --- | --- |')
row(`first prompt (${renderer.prompt({ messages: head, tools }).length} tokens)`, first)
row(`prompts of ${TURNS} turns`, episode)
console.log(`| parse a reply (${Math.round(replyTokens / TURNS)} tokens) | ${rate(parsing)} | | |`)
console.log(`| the same as a stream, token by token | ${rate(streaming)} | | |`)

function row(what: string, { own, reference: theirs }: { own: number; reference: number }): void {
  console.log(`| ${what} | ${time(own)} | ${time(theirs)} | ${(theirs / own).toFixed(0)} × |`)
}

function time(milliseconds: number): string {
  return milliseconds < 1
    ? `${(milliseconds * 1_000).toFixed(0)} µs`
    : `${milliseconds.toFixed(1)} ms`
}

function rate(milliseconds: number): string {
  const each = (milliseconds / TURNS) * 1_000
  return `${each.toFixed(0)} µs, ${(replyTokens / milliseconds / 1_000).toFixed(2)} M tokens/s`
}

/** Ids as a model samples them: markers are markers. */
function marked(text: string): Int32Array {
  return Int32Array.from(library.encode(text, { add_special_tokens: false }).ids)
}

function fastest(rounds: number, run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now()
    run()
    best = Math.min(best, performance.now() - began)
  }
  return best
}
