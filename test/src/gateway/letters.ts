import {
  createPrompt,
  textOf,
  tokenChunk,
  type Message,
  type ParsedReply,
  type Renderer,
} from '@tiltyard/core'

const alphabet = 'abcdefghijklmnopqrstuvwxyz '
const END = alphabet.length
const roles = { system: END + 1, user: END + 2, assistant: END + 3, tool: END + 4 } as const

/** Ids lie below this. */
export const LETTERS = END + 5

/** A language of small letters, for a model so small that it learns in seconds: one letter is one token, and there are no calls. */
export function lettersRenderer(): Renderer {
  const render = (message: Message) => [roles[message.role], ...idsOf(textOf(message.content)), END]
  const parse = (ids: Int32Array): ParsedReply => {
    const ended = ids.at(-1) === END
    const content = Array.from(ended ? ids.subarray(0, -1) : ids, (id) => alphabet[id] ?? '').join(
      '',
    )
    return {
      message: { role: 'assistant', content },
      termination: ended ? 'stop' : 'length',
      malformed: [],
      spans: content === '' ? [] : [{ kind: 'text', text: content }],
    }
  }
  return {
    specVersion: 'renderer/1',
    name: 'letters',
    fingerprint: 'letters',
    history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
    capabilities: { tools: false, images: false, reasoning: false },
    stop: { tokens: [END], strings: [] },
    prompt: ({ messages }) =>
      createPrompt([tokenChunk([...messages.flatMap(render), roles.assistant])]),
    extend: (prompt, { ids }, { messages }) =>
      createPrompt(
        [
          tokenChunk(ids),
          tokenChunk(ids.at(-1) === END ? [] : [END]),
          tokenChunk([...messages.flatMap(render), roles.assistant]),
        ],
        prompt,
      ),
    parse,
    stream() {
      const ids: number[] = []
      return {
        push(more) {
          const before = parse(Int32Array.from(ids)).message.content.length
          ids.push(...more)
          const text = parse(Int32Array.from(ids)).message.content.slice(before)
          return text === '' ? [] : [{ type: 'text', text }]
        },
        end: () => ({ deltas: [], reply: parse(Int32Array.from(ids)) }),
      }
    },
    supervised: () => [],
  }
}

/** What has no letter is a space. */
function idsOf(text: string): number[] {
  return Array.from(text.toLowerCase(), (character) => {
    const id = alphabet.indexOf(character)
    return id === -1 ? alphabet.indexOf(' ') : id
  })
}
