import assert from 'node:assert/strict'

import {
  isRunnable,
  randomStream,
  type AssistantMessage,
  type ParsedReply,
  type RandomStream,
  type ReplyContext,
  type StopReason,
} from '@tiltyard/core'

import {
  assistant,
  callOf,
  reasons,
  replyIds,
  tools,
  type RendererFeature,
  type Subject,
} from './fixture.ts'

/** A promise about reading replies: sampled ids → message. */
export interface ReadPromise {
  readonly name: string
  readonly feature?: RendererFeature
  /** Only for renderers with tools, or with reasoning. */
  readonly needs?: 'tools' | 'reasoning'
  readonly body: (subject: Subject) => void
}

/** How many malformed replies are tried. */
const FUZZED = 200

export const readPromises: readonly ReadPromise[] = [
  {
    name: 'reads back the text that it writes, in every script',
    body(subject) {
      for (const content of [
        'It is packed.',
        'Zwei Zeilen:\n\n- eine\n- noch eine',
        'naïve café, 日本語, עברית, emoji 👩‍👩‍👧 and e\u0301',
        '{"looks": ["like", "JSON"]} and <b>markup</b> & more',
      ]) {
        const { message, termination, malformed } = whole(
          subject,
          replyIds(subject, assistant(content)),
        )
        assert.equal(message.content.normalize('NFC'), content.normalize('NFC'))
        assert.equal(message.toolCalls, undefined)
        assert.equal(termination, 'stop')
        assert.deepEqual(malformed, [])
      }
    },
  },
  {
    name: 'reads back reasoning apart from text',
    needs: 'reasoning',
    body(subject) {
      const said = assistant('4', { reasoning: 'two and two\nmakes four' })
      const { message } = whole(subject, replyIds(subject, said))
      assert.deepEqual(message, said)
    },
  },
  {
    name: 'reads back a call with its arguments, typed by the schema',
    needs: 'tools',
    body(subject) {
      const args = {
        zip: '07040',
        note: null,
        limit: -7,
        with_items: true,
        ratio: 2.5,
        tags: ['a', 'b c'],
        range: { from: '0900' },
      }
      assert.deepEqual(callArguments(subject, args), args)
    },
  },
  {
    name: 'keeps a string a string, whatever it looks like',
    needs: 'tools',
    body(subject) {
      for (const zip of [
        '07040',
        'true',
        'null',
        'None',
        '1e5',
        '[1]',
        '{"a": 1}',
        '"quoted"',
        '',
        ' padded ',
        '\n    return x\n\n',
        '9007199254740993',
        'a < b && c > d',
        "it's",
        'C:\\new\\table',
      ]) {
        assert.deepEqual(callArguments(subject, { zip }), { zip })
      }
    },
  },
  {
    name: 'reads text and a call in one reply',
    needs: 'tools',
    feature: 'textBesideCalls',
    body(subject) {
      const ids = replyIds(
        subject,
        assistant('Looking.', { toolCalls: [callOf({ zip: '07040' })] }),
      )
      const { message } = whole(subject, ids)
      assert.equal(message.content, 'Looking.')
      assert.equal(message.toolCalls?.length, 1)
    },
  },
  {
    name: 'reads several calls in their order, each under the id that the context gives',
    needs: 'tools',
    feature: 'parallelCalls',
    body(subject) {
      const calls = [
        callOf({ zip: '1' }),
        { ...callOf({}, 1), name: 'list_rooms' },
        callOf({ zip: '2' }, 2),
      ]
      const ids = replyIds(subject, assistant('', { toolCalls: calls }))
      const { message } = whole(subject, ids, 'stop', (index) => `c${index}`)
      assert.deepEqual(
        message.toolCalls?.map((call) => [call.id, call.name, isRunnable(call) && call.arguments]),
        [
          ['c0', 'find_order', { zip: '1' }],
          ['c1', 'list_rooms', {}],
          ['c2', 'find_order', { zip: '2' }],
        ],
      )
    },
  },
  {
    name: 'reads ids that the model chose, not those that encoding gives',
    body(subject) {
      const { renderer, tokenizer } = subject
      const canonical = replyIds(subject, assistant('Northgate'))
      const stop = canonical.at(-1)!
      assert.ok(renderer.stop.tokens.includes(stop), 'a trained reply ends with a stop token')
      const odd = Int32Array.of(
        ...'Northgate'.split('').flatMap((char) => [...tokenizer.encode(char)]),
        stop,
      )
      const { message } = renderer.parse(odd, { tools: [], stop: 'stop' })
      // Where the prompt opened a think block the text is reasoning.
      assert.equal(message.content + (message.reasoning ?? ''), 'Northgate')
    },
  },
  {
    name: 'calls a reply without a stop token cut',
    body(subject) {
      const ids = replyIds(subject, assistant('It is'))
      assert.equal(whole(subject, ids.subarray(0, -1), 'length').termination, 'length')
    },
  },
  {
    name: 'runs nothing of a cut call that the whole reply would not run',
    needs: 'tools',
    body(subject) {
      const args = { zip: '07040', range: { from: '1' }, note: 'last' }
      const ids = replyIds(subject, assistant('', { toolCalls: [callOf(args)] }))
      const complete = runnable(whole(subject, ids))
      for (let length = 0; length < ids.length; length += 1) {
        const cut = runnable(whole(subject, ids.subarray(0, length), 'length'))
        assert.deepEqual(cut, complete.slice(0, cut.length), `cut after ${length} tokens`)
      }
    },
  },
  {
    name: 'never throws, loses no character and streams to the same end, whatever is sampled',
    body(subject) {
      const random = randomStream(3, 'renderer-cases')
      const replies = sampleReplies(subject)
      for (let round = 0; round < FUZZED; round += 1) {
        const ids = mutated(replies[round % replies.length]!, subject, random)
        const stop = random.integer(2) === 0 ? 'stop' : 'length'
        const reply = whole(subject, ids, stop)
        assert.equal(
          reply.spans.map(({ text }) => text).join(''),
          subject.tokenizer.decode(ids),
          'the spans are the whole reply',
        )
        checkStream(subject, ids, stop, reply, () => 1)
        checkStream(subject, ids, stop, reply, () => 1 + random.integer(7))
      }
    },
  },
  {
    name: 'reads any ids at all',
    body(subject) {
      const random = randomStream(4, 'renderer-cases')
      const { vocabularySize } = subject.tokenizer
      for (let round = 0; round < FUZZED; round += 1) {
        const ids = Int32Array.from({ length: random.integer(40) }, () =>
          random.integer(vocabularySize + 5),
        )
        const reply = whole(subject, ids, 'length')
        assert.equal(reply.message.role, 'assistant')
      }
    },
  },
]

function whole(
  { renderer }: Subject,
  ids: Int32Array,
  stop: StopReason = 'stop',
  callId?: ReplyContext['callId'],
): ParsedReply {
  return renderer.parse(ids, { tools, stop, ...(callId === undefined ? {} : { callId }) })
}

/** The arguments that come back of a call. */
function callArguments(subject: Subject, args: Readonly<Record<string, unknown>>): unknown {
  const reply = whole(subject, replyIds(subject, assistant('', { toolCalls: [callOf(args)] })))
  assert.deepEqual(reply.malformed, [])
  const [call, ...others] = runnable(reply)
  assert.deepEqual(others, [])
  assert.equal(call?.name, 'find_order')
  return call.arguments
}

function runnable({ message }: ParsedReply) {
  return (message.toolCalls ?? [])
    .filter(isRunnable)
    .map(({ name, arguments: args }) => ({ name, arguments: args }))
}

function sampleReplies(subject: Subject): readonly Int32Array[] {
  const { capabilities } = subject.renderer
  const messages: AssistantMessage[] = [assistant('It is packed. <b>Really</b>\n')]
  if (reasons(subject)) messages.push(assistant('Yes.', { reasoning: 'a < b, so\nyes' }))
  if (capabilities.tools) {
    messages.push(assistant('', { toolCalls: [callOf({ zip: '07040', tags: ['x', '日本'] })] }))
    messages.push(
      assistant('', { toolCalls: [callOf({ note: 'one\n<two>\n</three>', limit: 3 })] }),
    )
  }
  return messages.map((message) => replyIds(subject, message))
}

/** A reply as a model may spoil it: pieces left out, doubled, moved, foreign ids and markers put in, cut short. */
function mutated(reply: Int32Array, { tokenizer }: Subject, random: RandomStream): Int32Array {
  const markers = [...tokenizer.markers.values()]
  let ids = [...reply]
  for (let change = random.integer(4); change >= 0; change -= 1) {
    const at = random.integer(ids.length + 1)
    const length = 1 + random.integer(4)
    switch (random.integer(6)) {
      case 0:
        ids.splice(at, length)
        break
      case 1:
        ids.splice(at, 0, ...ids.slice(at, at + length))
        break
      case 2:
        ids.splice(random.integer(ids.length + 1), 0, ...ids.splice(at, length))
        break
      case 3:
        ids.splice(at, 0, random.integer(tokenizer.vocabularySize))
        break
      case 4:
        if (markers.length > 0) ids.splice(at, 0, markers[random.integer(markers.length)]!)
        break
      default:
        ids = ids.slice(0, at)
    }
  }
  return Int32Array.from(ids)
}

/** A stream in pieces gives the same reply, and its deltas add up to the reply's parts. */
function checkStream(
  { renderer }: Subject,
  ids: Int32Array,
  stop: StopReason,
  expected: ParsedReply,
  step: () => number,
): void {
  const stream = renderer.stream({ tools, stop })
  const deltas = []
  for (let at = 0; at < ids.length;) {
    const next = at + step()
    deltas.push(...stream.push(ids.subarray(at, next)))
    at = next
  }
  const end = stream.end(stop)
  deltas.push(...end.deltas)
  assert.deepEqual(end.reply, expected)

  const { content, reasoning = '', toolCalls = [] } = expected.message
  let text = ''
  let thought = ''
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const delta of deltas) {
    if (delta.type === 'text') text += delta.text
    else if (delta.type === 'reasoning') thought += delta.text
    else if (delta.type === 'call')
      calls[delta.index] = { id: delta.id, name: delta.name, arguments: '' }
    else if (delta.type === 'arguments') calls[delta.index]!.arguments += delta.text
  }
  assert.equal(text, content)
  assert.equal(thought, reasoning)
  assert.equal(calls.length, toolCalls.length)
  for (const [index, call] of toolCalls.entries()) {
    assert.equal(calls[index]!.id, call.id)
    assert.equal(calls[index]!.name, call.name)
    if (!isRunnable(call)) assert.equal(calls[index]!.arguments, call.rawArguments)
    else JSON.parse(calls[index]!.arguments)
  }
}
