import {
  type Message,
  type PlayedCall,
  type PlayedReply,
  type PlayRecorder,
  type RecordedMessage,
  type RunWriter,
  type ToolSpec,
} from '@tiltyard/core'

import { EpisodeError } from './episode-error.ts'
import { noCounts } from './play-metrics.ts'
import { recordedMessage, type EpisodePlace, type PlayLog } from './recorded.ts'

/** Takes down one play: keeps it for its record and journals it as it goes. */
export interface EpisodeRecorder extends PlayRecorder, Omit<PlayLog, 'sequences'> {
  /** Plain numbers about the play. */
  readonly counts: Readonly<Record<string, number>>
  /** The first record that was not taken, as an error of the phase `record`. */
  readonly failure: EpisodeError | undefined
  /** From now on nothing is taken down; `onLate` hears of what comes. */
  close(): void
}

export interface EpisodeRecorderOptions {
  readonly place: EpisodePlace
  readonly writer: RunWriter | undefined
  readonly onReply: (reply: PlayedReply) => void
  readonly onLate: (what: string) => void
}

export function createEpisodeRecorder(options: EpisodeRecorderOptions): EpisodeRecorder {
  const { place, writer, onReply, onLate } = options
  const messages: RecordedMessage[] = []
  const calls: PlayedCall[] = []
  const replies: PlayedReply[] = []
  const counts: Record<string, number> = noCounts()
  let tools: readonly ToolSpec[] = []
  let isClosed = false
  let failure: EpisodeError | undefined
  // Messages before this one are in the journal.
  let journaled = 0
  // Texts of the messages before `known`; a conversation that is shown again brings the new ones only.
  let texts: Set<string> | undefined
  let known = 0

  const count = (name: string, amount = 1) => {
    counts[name] = (Object.hasOwn(counts, name) ? counts[name]! : 0) + amount
  }
  const journal = async (to: RunWriter, carriedOut?: readonly PlayedCall[]) => {
    const said = messages.slice(journaled)
    journaled = messages.length
    try {
      await to.append({
        type: 'call',
        key: place.key,
        task: place.task.id,
        fingerprint: place.task.fingerprint,
        startedAt: place.startedAt,
        reply: replies.length,
        messages: said,
        ...(carriedOut === undefined ? {} : { calls: carriedOut.map((call) => ({ ...call })) }),
      })
    } catch (error) {
      failure ??= new EpisodeError('record', error)
      throw failure
    }
  }
  const unknownOf = (shown: readonly Message[]): readonly RecordedMessage[] => {
    const recorded = shown.map((message) => recordedMessage(message))
    if (messages.length === 0) return recorded
    const seen = (texts ??= new Set())
    for (; known < messages.length; known += 1) {
      const { reply: _, ...plain } = { reply: undefined, ...messages[known]! }
      seen.add(JSON.stringify(plain))
    }
    return recorded.filter((message) => !seen.has(JSON.stringify(message)))
  }
  /** An earlier system prompt that stands again in the place of a later one, where nothing else is new. */
  const returnedHead = (shown: readonly Message[]): readonly RecordedMessage[] => {
    const head = shown.find(({ role }) => role === 'system')
    const last = messages.findLast(({ role }) => role === 'system')
    if (head === undefined || last === undefined) return []
    const recorded = recordedMessage(head)
    return JSON.stringify(recorded) === JSON.stringify(last) ? [] : [recorded]
  }
  /** True when it is too late to take something down. */
  const isLate = (what: string): boolean => {
    if (isClosed) onLate(what)
    return isClosed
  }

  return {
    messages,
    calls,
    replies,
    counts,
    get tools() {
      return tools
    },
    get failure() {
      return failure
    },

    async conversation(shown, shownTools) {
      if (isLate('conversation')) return
      const unknown = unknownOf(shown)
      messages.push(...(unknown.length > 0 ? unknown : returnedHead(shown)))
      tools = mergeTools(tools, shownTools)
    },

    async reply(reply) {
      if (isLate('reply')) return
      messages.push(recordedMessage(reply.message, replies.length))
      replies.push(reply)
      onReply(reply)
      count('replies')
      if (reply.termination === 'eos') count('eos_replies')
      count('sampled_tokens', reply.sample.ids.length)
      if (writer !== undefined) await journal(writer)
    },

    async observation(said, carriedOut) {
      if (isLate('observation')) return
      for (const message of said) messages.push(recordedMessage(message))
      for (const call of carriedOut) {
        calls.push(call)
        if (call.error !== undefined) count('tool_errors')
      }
      // What only continues the conversation is journaled with the reply to it.
      if (writer !== undefined && carriedOut.length > 0) await journal(writer, carriedOut)
    },

    count(name, amount) {
      if (!isClosed) count(name, amount)
    },

    close() {
      isClosed = true
    },
  }
}

/** All tools that were shown; a tool that was shown again in another form replaces its older form. */
function mergeTools(known: readonly ToolSpec[], shown: readonly ToolSpec[]): readonly ToolSpec[] {
  if (known.length === 0) return shown
  const byName = new Map([...known, ...shown].map((tool) => [tool.name, tool]))
  return [...byName.values()]
}
