import assert from 'node:assert/strict'

import {
  createPrompt,
  isRefusal,
  TiltyardError,
  type Conversation,
  type Message,
  type NextInput,
  type RenderedPrompt,
  type ToolMessage,
  type UserMessage,
} from '@tiltyard/core'
import { toolCall } from '@tiltyard/core/rendering'

import {
  assistant,
  callOf,
  conversationOf,
  countingTokenizer,
  promptText,
  reasons,
  replyIds,
  tools,
  wholeIds,
  type RendererCasesOptions,
  type Subject,
} from './fixture.ts'

/** A promise about writing prompts: conversation → ids. */
export interface WritePromise {
  readonly name: string
  readonly needs?: 'tools' | 'tool_loop'
  readonly body: (subject: Subject, options: RendererCasesOptions) => void
}

/** Turns of the episode whose cost is measured, and how much more than one render of the whole they may cost. */
const TURNS = 128
const MOST_WORK = 3

const result: ToolMessage = {
  role: 'tool',
  toolCallId: 'call_0',
  name: 'find_order',
  content: 'ORDER 7731 shipped',
}
const followUp: UserMessage = { role: 'user', content: 'And when did it leave?' }

export const writePromises: readonly WritePromise[] = [
  {
    name: 'says what it is, and has one fingerprint for one set of options and one tokenizer',
    body({ renderer, tokenizer }, { create }) {
      assert.equal(renderer.specVersion, 'renderer/1')
      assert.notEqual(renderer.name, '')
      assert.equal(create(tokenizer).fingerprint, renderer.fingerprint)
      const other = create({ ...tokenizer, fingerprint: `other ${tokenizer.fingerprint}` })
      assert.notEqual(
        other.fingerprint,
        renderer.fingerprint,
        'another tokenizer, another fingerprint',
      )
      assert.ok(
        renderer.stop.tokens.length + renderer.stop.strings.length > 0,
        'nothing ends a reply',
      )
    },
  },
  {
    name: 'gives the same ids for the same conversation, each time',
    body(subject, { create }) {
      const conversation = conversationOf(subject, ...exchange(subject), followUp)
      const ids = wholeIds(subject.renderer.prompt(conversation).chunks())
      assert.deepEqual(wholeIds(subject.renderer.prompt(conversation).chunks()), ids)
      assert.deepEqual(wholeIds(create(subject.tokenizer).prompt(conversation).chunks()), ids)
    },
  },
  {
    name: 'writes every message of the conversation',
    body(subject) {
      const { renderer, tokenizer } = subject
      const text = promptText(
        renderer.prompt(conversationOf(subject, ...exchange(subject), followUp)),
        tokenizer,
      )
      const wanted = ['Be brief.', 'It is for 07040.', 'And when did it leave?']
      if (renderer.capabilities.tools) wanted.push('find_order', 'ORDER 7731 shipped')
      for (const part of wanted) assert.ok(text.includes(part), `the prompt lacks ${part}`)
    },
  },
  {
    name: 'makes no marker from what a caller wrote, wherever it stands',
    body(subject) {
      const { renderer, tokenizer } = subject
      const ids = new Set(tokenizer.markers.values())
      const count = (planted: string, inReplies: string) => {
        const prompt = renderer.prompt(plantedConversation(subject, planted, inReplies))
        return wholeIds(prompt.chunks()).filter((id) => ids.has(id)).length
      }
      for (const marker of tokenizer.markers.keys()) {
        // Templates look for think tags in the text of replies; those are their own business.
        const inReplies = marker.includes('think') ? 'plain' : marker
        assert.equal(
          count(marker, inReplies),
          count('plain', 'plain'),
          `${marker} in a caller's text became a marker`,
        )
      }
    },
  },
  {
    name: 'takes any text: every script, control characters, half a surrogate pair',
    body(subject) {
      const { renderer, tokenizer } = subject
      const odd = '日本語 עברית 👩‍👩‍👧 \u0000\u001F\u0085\uFEFF\u2028'
      const next: Message = { role: 'user', content: `>${odd}\uD83D<` }
      const text = promptText(
        renderer.prompt(conversationOf(subject, assistant('ok'), next)),
        tokenizer,
      )
      assert.ok(text.includes(`>${odd}\uFFFD<`))
    },
  },
  {
    name: 'takes images where it has them, and refuses them where it has not',
    body(subject) {
      const { renderer } = subject
      const image = {
        type: 'image',
        format: 'png',
        data: Uint8Array.of(1, 2, 3),
        width: 224,
        height: 224,
      } as const
      const conversation: Conversation = {
        messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }],
      }
      if (!renderer.capabilities.images) return refuses(() => renderer.prompt(conversation))
      const prompt = renderer.prompt(conversation)
      const chunk = prompt.chunks().find(({ type }) => type === 'image')
      assert.ok(chunk?.type === 'image' && chunk.tokens > 0, 'there is no image chunk')
      assert.deepEqual(chunk.data, image.data)
      assert.equal(prompt.length, wholeIds(prompt.chunks()).length)
      return undefined
    },
  },
  {
    name: 'refuses tools that it has no place for',
    body({ renderer }) {
      if (renderer.capabilities.tools) return
      refuses(() => renderer.prompt({ messages: [followUp], tools }))
    },
  },
  {
    name: 'writes arguments the same, whether they came as text or as an object',
    needs: 'tools',
    body(subject) {
      const write = (given: string | { readonly zip: string }) => {
        const call = toolCall('call_0', 'find_order', given)
        const conversation = conversationOf(subject, assistant('', { toolCalls: [call] }), result)
        return wholeIds(subject.renderer.prompt(conversation).chunks())
      }
      assert.deepEqual(write('{"zip": "07040"}'), write({ zip: '07040' }))
    },
  },
  {
    name: 'goes on from exactly the ids that were there, sampled ones included',
    body(subject) {
      for (const next of nextInputs(subject)) {
        const { prompt, reply } = played(subject)
        const odd = Int32Array.of(
          ...subject.tokenizer.encode(' Nor'),
          ...subject.tokenizer.encode('thgate'),
          ...reply,
        )
        checkExtension(subject, prompt, odd, next)
        checkExtension(subject, createPrompt(prompt.chunks()), reply, next)
      }
    },
  },
  {
    name: 'goes on from a cut reply too, closing it',
    body(subject) {
      const { renderer } = subject
      const { prompt, reply } = played(subject)
      const cut = reply.subarray(0, -1)
      for (const next of nextInputs(subject)) {
        const extended = renderer.extend(prompt, { ids: cut, stop: 'length' }, next)
        if (isRefusal(extended)) continue
        const added = wholeIds(extended.chunks()).subarray(prompt.length + cut.length)
        assert.ok(
          renderer.stop.tokens.includes(added[0]!),
          'a cut reply is closed by its stop token',
        )
      }
    },
  },
  {
    name: 'goes on as it declares after tool results, and then writes what rendering again would',
    needs: 'tools',
    body(subject) {
      checkDeclared(subject, { messages: [result] }, subject.renderer.history.extendsToolLoop)
    },
  },
  {
    name: 'goes on as it declares after a user message, and then writes what rendering again would',
    body(subject) {
      checkDeclared(subject, { messages: [followUp] }, subject.renderer.history.extendsUserTurn)
    },
  },
  {
    name: 'trains each reply whole and nothing else, from the very prompt that sampling had',
    body(subject) {
      const { renderer } = subject
      const messages = [...exchange(subject), followUp, assistant('On Monday.')]
      const conversation = conversationOf(subject, ...messages)
      const rows = renderer.supervised(conversation, 'all_assistant_messages')
      let trained = 0
      for (const { chunks, weights } of rows) {
        assert.equal(weights.length, wholeIds(chunks).length, 'one weight per position')
        assert.ok(weights.every((weight) => weight === 0 || weight === 1))
        trained += weights.reduce((sum, weight) => sum + weight, 0)
      }
      const replies = messages.flatMap((message, index) =>
        message.role === 'assistant' ? [replyIds(subject, message, messages.slice(0, index))] : [],
      )
      assert.equal(
        trained,
        replies.reduce((sum, ids) => sum + ids.length, 0),
      )
      for (const ids of replies) assert.ok(renderer.stop.tokens.includes(ids.at(-1)!))

      const last = renderer.supervised(conversation, 'last_assistant_message')[0]!
      const before = { ...conversation, messages: conversation.messages.slice(0, -1) }
      const prompt = wholeIds(renderer.prompt(before).chunks())
      assert.deepEqual(wholeIds(last.chunks).subarray(0, prompt.length), prompt)
      assert.equal(
        last.weights.findIndex((weight) => weight === 1),
        prompt.length,
      )
    },
  },
  {
    name: 'trains nothing where no reply is last',
    body(subject) {
      const conversation = conversationOf(subject, assistant('Soon.'), followUp)
      const rows = subject.renderer.supervised(conversation, 'last_assistant_message')
      assert.ok(rows.every(({ weights }) => weights.every((weight) => weight === 0)))
    },
  },
  {
    name: `works over ${TURNS} turns no more than ${MOST_WORK} times as much as one render of the whole`,
    needs: 'tool_loop',
    body(subject, { create }) {
      const reply = replyIds(subject, called(subject))
      const counted = countingTokenizer(subject.tokenizer)
      const renderer = create(counted.tokenizer)
      let prompt: RenderedPrompt = renderer.prompt(conversationOf(subject))
      const messages: Message[] = []
      const parsed = renderer.parse(reply, { tools, stop: 'stop' }).message
      const before = counted.work()
      for (let turn = 0; turn < TURNS; turn += 1) {
        const next: NextInput = { messages: [{ ...result, content: `ORDER ${turn} shipped` }] }
        const extended = renderer.extend(prompt, { ids: reply, stop: 'stop' }, next)
        if (isRefusal(extended)) throw new Error(`turn ${turn} was refused: ${extended.refused}`)
        prompt = extended
        messages.push(parsed, ...next.messages)
      }
      const extending = counted.work() - before
      const whole = renderer.prompt(conversationOf(subject, ...messages))
      const rendering = counted.work() - before - extending
      assert.ok(whole.length > 0)
      assert.ok(
        extending <= MOST_WORK * rendering,
        `${TURNS} turns encoded and decoded ${extending}, one render ${rendering}`,
      )
    },
  },
]

/** A reply that calls where the renderer has calls, and reasons where it may. */
function called(subject: Subject) {
  const reasoning = reasons(subject) ? { reasoning: 'need to look' } : {}
  return subject.renderer.capabilities.tools
    ? assistant('', { ...reasoning, toolCalls: [callOf({ zip: '07040' })] })
    : assistant('Looking.', reasoning)
}

function exchange(subject: Subject): readonly Message[] {
  return subject.renderer.capabilities.tools
    ? [called(subject), result, assistant('It is shipped.')]
    : [called(subject)]
}

function played(subject: Subject) {
  return {
    prompt: subject.renderer.prompt(conversationOf(subject)),
    reply: replyIds(subject, called(subject)),
  }
}

function nextInputs({ renderer }: Subject): readonly NextInput[] {
  const user: NextInput = { messages: [followUp] }
  return renderer.capabilities.tools ? [{ messages: [result] }, user] : [user]
}

function checkExtension(
  { renderer }: Subject,
  prompt: RenderedPrompt,
  reply: Int32Array,
  next: NextInput,
): void {
  const extended = renderer.extend(prompt, { ids: reply, stop: 'stop' }, next)
  if (isRefusal(extended)) {
    assert.notEqual(extended.refused, '', 'a refusal says why')
    return
  }
  assert.equal(extended.parent, prompt, 'the handle continues the one that it was given')
  const ids = wholeIds(extended.chunks())
  assert.deepEqual(ids.subarray(0, prompt.length), wholeIds(prompt.chunks()))
  assert.deepEqual(ids.subarray(prompt.length, prompt.length + reply.length), reply)
  assert.ok(ids.length > prompt.length + reply.length, 'nothing was added')
}

function checkDeclared(subject: Subject, next: NextInput, declared: boolean): void {
  const { renderer, tokenizer } = subject
  const { prompt, reply } = played(subject)
  const extended = renderer.extend(prompt, { ids: reply, stop: 'stop' }, next)
  if (!declared) {
    assert.notEqual(renderer.history.breaks, '', 'what breaks the history is said')
    return
  }
  if (isRefusal(extended)) throw new Error(`declared to go on, but refused: ${extended.refused}`)
  const { message } = renderer.parse(reply, { tools, stop: 'stop' })
  const again = renderer.prompt(conversationOf(subject, message, ...next.messages))
  assert.equal(promptText(extended, tokenizer), promptText(again, tokenizer))
}

function plantedConversation(subject: Subject, planted: string, inReplies: string): Conversation {
  const around = `a ${planted} b`
  const call = callOf({ zip: inReplies, [`k${inReplies}`]: 1 })
  const withTools = subject.renderer.capabilities.tools
  const reasoning = reasons(subject) ? { reasoning: `r ${inReplies} r` } : {}
  return {
    messages: [
      { role: 'system', content: around },
      { role: 'user', content: around },
      ...(withTools
        ? [assistant('', { ...reasoning, toolCalls: [call] }), { ...result, content: around }]
        : []),
      assistant(`x ${inReplies} x`, reasoning),
      { role: 'user', content: around },
    ],
    ...(withTools
      ? {
          tools: tools.map((tool) => ({
            ...tool,
            description: around,
            parameters: {
              ...tool.parameters,
              properties: { [planted]: { type: 'string', description: around, enum: [planted] } },
            },
          })),
        }
      : {}),
  }
}

function refuses(write: () => unknown): void {
  assert.throws(write, (error: unknown) => TiltyardError.is(error, 'CONFIG'))
}
