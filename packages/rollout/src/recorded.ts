import type {
  AssistantMessage,
  Content,
  EndReason,
  EpisodeEvent,
  EpisodeKey,
  GroupEvent,
  Message,
  PlayedCall,
  PlayedReply,
  RecordedMessage,
  ScoreEvent,
  TaskRef,
  ToolSpec,
} from '@tiltyard/core'

import type { PlayedEpisode, PlayedGroup } from './played.ts'
import { sequenceIds, type TokenSequence } from './sequences.ts'

/** Facts that every record of an episode carries. */
export interface EpisodePlace {
  readonly key: EpisodeKey
  readonly task: TaskRef
  /** Of the universe, as the plan gave it. */
  readonly seed: number
  /** As `Episode.instance`. */
  readonly instance?: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
}

/** What was said and done in a play. */
export interface PlayLog {
  readonly messages: readonly RecordedMessage[]
  readonly tools: readonly ToolSpec[]
  readonly calls: readonly PlayedCall[]
  readonly replies: readonly PlayedReply[]
  readonly sequences: readonly TokenSequence[]
}

/** The event of an episode that is over. */
export function episodeEvent(
  { key, task, seed, instance, startedAt }: EpisodePlace,
  log: PlayLog,
  end: EndReason,
  ms: number,
): EpisodeEvent {
  return {
    type: 'episode',
    key,
    task: task.id,
    fingerprint: task.fingerprint,
    ...(task.tags === undefined ? {} : { tags: [...task.tags] }),
    seed,
    ...(instance === undefined ? {} : { instance }),
    startedAt,
    ms,
    end,
    messages: [...log.messages],
    tools: log.tools.map((tool) => ({ ...tool })),
    calls: log.calls.map((call) => ({ ...call })),
    replies: recordedReplies(log.replies, log.sequences),
    sequences: log.sequences.map(recordedSequence),
  }
}

function recordedReplies(
  replies: readonly PlayedReply[],
  sequences: readonly TokenSequence[],
): EpisodeEvent['replies'] {
  const places = sequences
    .flatMap(({ spans }, sequence) => spans.map((span) => ({ ...span, sequence })))
    .toSorted((a, b) => a.reply - b.reply)
  return replies.map((reply, index) => {
    const { sequence, start, length } = places[index]!
    const { version, sample, sampling, seed, trained, restart, malformed, agent, purpose, ms } =
      reply
    return {
      version,
      sequence,
      start,
      length,
      stop: sample.stop,
      ...sampling,
      ...(seed === undefined ? {} : { seed }),
      trained,
      ...(restart === undefined ? {} : { restart }),
      ...(malformed.length === 0 ? {} : { malformed: [...malformed] }),
      ...(agent === undefined ? {} : { agent }),
      ...(purpose === undefined ? {} : { purpose }),
      ms,
    }
  })
}

function recordedSequence(sequence: TokenSequence): EpisodeEvent['sequences'][number] {
  const ids = sequenceIds(sequence)
  const logprobs = new Float32Array(ids.length)
  const mask = new Int32Array(ids.length)
  for (const { start, length, logprobs: sampled, trained } of sequence.spans) {
    logprobs.set(sampled, start)
    if (trained) mask.fill(1, start, start + length)
  }
  return { ids, logprobs, mask }
}

/** A message as it is recorded: images by their size; a sampled one with the index of its reply. */
export function recordedMessage(message: Message, reply?: number): RecordedMessage {
  if (message.role === 'assistant') return recordedAssistant(message, reply)
  return { ...message, content: recordedContent(message.content) }
}

function recordedAssistant(
  { role, content, reasoning, toolCalls }: AssistantMessage,
  reply: number | undefined,
): RecordedMessage {
  return {
    role,
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolCalls === undefined ? {} : { toolCalls: [...toolCalls] }),
    ...(reply === undefined ? {} : { reply }),
  }
}

function recordedContent(
  content: Content,
): Exclude<RecordedMessage, { role: 'assistant' }>['content'] {
  if (typeof content === 'string') return content
  return content.map((part) =>
    part.type === 'text'
      ? part
      : {
          type: 'image',
          format: part.format,
          width: part.width,
          height: part.height,
          bytes: part.data.length,
        },
  )
}

/** The event of an episode's scores, as they are now. */
export function scoreEvent({ key, outcome, metrics, reward }: PlayedEpisode): ScoreEvent {
  return { type: 'score', key, scores: outcome?.scores ?? {}, metrics, reward }
}

/** The event of a group that is over. `dropped` says why it isn't trained, where its play doesn't. */
export function groupEvent(group: PlayedGroup, dropped = group.dropped): GroupEvent {
  const { key, task, size } = group
  return {
    type: 'group',
    key,
    task: task.id,
    fingerprint: task.fingerprint,
    ...(task.tags === undefined ? {} : { tags: [...task.tags] }),
    members: size,
    ...(dropped === undefined ? {} : { dropped }),
  }
}
