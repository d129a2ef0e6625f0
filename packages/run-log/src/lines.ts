import {
  endReasonSchema,
  rewardSchema,
  scoreSchema,
  type CallEvent,
  type EpisodeEvent,
  type EpisodeKey,
  type FailureEvent,
  type GroupEvent,
  type Recorded,
  type ScoreEvent,
  type TrainingEvent,
} from '@tiltyard/core'
import { z } from 'zod'

import type { GroupPlace } from './layout.ts'

/**
 * A line tells of a record what lists and plots need, and where the whole lies. Lines of one step lie together, so a line names
 * its episode by `g<group>/m<member>/a<attempt>` alone.
 */

/** Where a record lies: offset and length of its gzip member, then offset and length in what that unpacks to. Bytes. */
const atSchema = z.tuple([z.int(), z.int(), z.int(), z.int()])
export type At = Recorded<z.infer<typeof atSchema>>

const idSchema = z.string().regex(/^g\d+\/m\d+\/a\d+$/)

const episodeLine = z.object({
  type: z.literal('episode'),
  id: idSchema,
  task: z.string(),
  fingerprint: z.string(),
  end: endReasonSchema,
  replies: z.int(),
  calls: z.int(),
  promptTokens: z.int(),
  sampledTokens: z.int(),
  startedAt: z.number(),
  ms: z.number(),
  at: atSchema,
})

const callLine = z.object({
  type: z.literal('call'),
  id: idSchema,
  task: z.string(),
  fingerprint: z.string(),
  startedAt: z.number(),
  reply: z.int(),
  calls: z.int(),
  at: atSchema,
})

const scoreLine = z.object({
  type: z.literal('score'),
  id: idSchema,
  /** Without their notes. */
  scores: z.record(z.string(), scoreSchema),
  reward: rewardSchema,
  at: atSchema,
})

const trainingLine = z.object({
  type: z.literal('training'),
  id: idSchema,
  step: z.int(),
  advantage: z.number().optional(),
  untrained: z.string().optional(),
  at: atSchema,
})

const failureLine = z.object({ type: z.literal('failure'), id: idSchema, at: atSchema })

const groupLine = z.object({
  type: z.literal('group'),
  group: z.int(),
  task: z.string(),
  members: z.int(),
  dropped: z.string().optional(),
  at: atSchema,
})

const lineSchema = z.discriminatedUnion('type', [
  episodeLine,
  callLine,
  scoreLine,
  trainingLine,
  failureLine,
  groupLine,
])

/** @throws SyntaxError or ZodError for a text that is no line. */
export function parseLine(text: string): Line {
  return lineSchema.parse(JSON.parse(text)) as Line
}

export type Line = Recorded<z.infer<typeof lineSchema>>
export type EpisodeLine = Recorded<z.infer<typeof episodeLine>>
export type CallLine = Recorded<z.infer<typeof callLine>>
export type ScoreLine = Recorded<z.infer<typeof scoreLine>>
export type TrainingLine = Recorded<z.infer<typeof trainingLine>>
export type GroupLine = Recorded<z.infer<typeof groupLine>>

/** Events that belong to a step's folder. */
export type PlacedEvent =
  | EpisodeEvent
  | CallEvent
  | ScoreEvent
  | TrainingEvent
  | GroupEvent
  | (FailureEvent & { readonly key: EpisodeKey })

type WithoutAt<T> = T extends unknown ? Omit<T, 'at'> : never

/** The line of an event, but for where its record will lie. */
export function lineOf(event: PlacedEvent): WithoutAt<z.input<typeof lineSchema>> {
  if (event.type === 'group') {
    const { key, task, members, dropped } = event
    return { type: 'group', group: key.group, task, members, dropped }
  }
  if (event.type === 'episode') return episodeLineOf(event)
  const id = localId(event.key)
  if (event.type === 'score')
    return { type: 'score', id, scores: withoutNotes(event.scores), reward: event.reward }
  if (event.type === 'training') {
    const { step, advantage, untrained } = event
    return { type: 'training', id, step, advantage, untrained }
  }
  if (event.type === 'failure') return { type: 'failure', id }
  const { task, fingerprint, startedAt, reply, calls = [] } = event
  return { type: 'call', id, task, fingerprint, startedAt, reply, calls: calls.length }
}

function episodeLineOf(event: EpisodeEvent): WithoutAt<z.input<typeof episodeLine>> {
  const sampledTokens = event.replies.reduce((sum, { length }) => sum + length, 0)
  const tokens = event.sequences.reduce((sum, { ids }) => sum + ids.length, 0)
  return {
    type: 'episode',
    id: localId(event.key),
    task: event.task,
    fingerprint: event.fingerprint,
    end: event.end,
    replies: event.replies.length,
    calls: event.calls.length,
    promptTokens: Math.max(0, tokens - sampledTokens),
    sampledTokens,
    startedAt: event.startedAt,
    ms: event.ms,
  }
}

function withoutNotes(scores: ScoreEvent['scores']): z.input<typeof scoreLine>['scores'] {
  return Object.fromEntries(
    Object.entries(scores).map(([name, score]) => [
      name,
      'value' in score ? { value: score.value } : score,
    ]),
  )
}

export function localId({ group, member, attempt }: EpisodeKey): string {
  return `g${group}/m${member}/a${attempt}`
}

export function keyOf(place: GroupPlace, local: string): EpisodeKey {
  const [group = 0, member = 0, attempt = 0] = local.split('/').map((part) => Number(part.slice(1)))
  const { split, evaluation, step } = place
  return {
    split,
    ...(evaluation === undefined ? {} : { evaluation }),
    step,
    group,
    member,
    attempt,
  }
}
