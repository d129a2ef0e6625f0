import {
  endReasonSchema,
  rewardSchema,
  runRecordSchema,
  scoreSchema,
  splitSchema,
} from '@tiltyard/core'
import { z } from 'zod'

/** What is answered. The page takes these types; the server's tests check every answer against them. */

const errorSchema = z.strictObject({
  name: z.string(),
  code: z.string().optional(),
  message: z.string(),
})

/** Every refusal and failure. */
export const problemAnswer = z.strictObject({
  error: z.strictObject({ code: z.string(), message: z.string() }),
})

export const aboutAnswer = z.strictObject({
  /** What the index calls itself: `folder runs`. */
  index: z.string(),
})

const runLine = z.strictObject({
  name: z.string(),
  status: z.enum(['running', 'completed', 'interrupted', 'failed']),
  /** Milliseconds since 1970. */
  startedAt: z.number().optional(),
  /** Completed steps. */
  steps: z.int(),
  damage: z.string().optional(),
})
export type RunLine = z.infer<typeof runLine>
export const runsAnswer = z.strictObject({ runs: z.array(runLine) })

/** Where metrics are measured: the training, or an evaluation. */
const seriesPlace = z.strictObject({ split: splitSchema, evaluation: z.string().optional() })
export type SeriesPlace = z.infer<typeof seriesPlace>

export const runAnswer = z.strictObject({
  run: runLine,
  record: runRecordSchema,
  places: z.array(seriesPlace.extend({ steps: z.array(z.int()) })),
  /** Sums since the run began. */
  totals: z.record(z.string(), z.number()),
  checkpoints: z.array(
    z.strictObject({
      step: z.int(),
      name: z.string(),
      kinds: z.array(z.enum(['training', 'sampling'])),
      final: z.boolean(),
    }),
  ),
  /** Failures of no episode. */
  failures: z.array(
    z.strictObject({ step: z.int().optional(), phase: z.string(), error: errorSchema }),
  ),
  end: z
    .strictObject({ status: z.string(), at: z.number(), error: errorSchema.optional() })
    .optional(),
})
export type RunAnswer = z.infer<typeof runAnswer>

const series = seriesPlace.extend({
  name: z.string(),
  steps: z.array(z.int()),
  /** One per step; null where it was not finite. */
  values: z.array(z.number().nullable()),
})
export type Series = z.infer<typeof series>
export const metricsAnswer = z.strictObject({ series: z.array(series) })

const numbers = z.record(z.string(), z.number().nullable())
export const numbersAnswer = z.strictObject({ values: numbers, timing: numbers })

const episodeLine = z.strictObject({
  /** `train/step-0007/g3/m1/a0` */
  id: z.string(),
  split: splitSchema,
  evaluation: z.string().optional(),
  step: z.int(),
  group: z.int(),
  member: z.int(),
  attempt: z.int(),
  task: z.string(),
  /** `completed`, the limit that cut it, `failed`, `cancelled`, or `unfinished`. */
  end: z.string(),
  reason: endReasonSchema.optional(),
  reward: rewardSchema.optional(),
  scores: z.record(z.string(), scoreSchema),
  advantage: z.number().optional(),
  /** True once it was in an update; else why not; absent when it isn't decided. */
  trained: z.union([z.literal(true), z.string()]).optional(),
  replies: z.int(),
  calls: z.int(),
  promptTokens: z.int(),
  sampledTokens: z.int(),
  startedAt: z.number(),
  ms: z.number(),
})
export type EpisodeLine = z.infer<typeof episodeLine>

const groupLine = z.strictObject({
  id: z.string(),
  group: z.int(),
  task: z.string(),
  /** Mean over the rewarded members. */
  reward: z.number().optional(),
  /** Why it isn't trained. */
  dropped: z.string().optional(),
  /** All attempts, in order of member and attempt. */
  episodes: z.array(episodeLine),
})
export type GroupLine = z.infer<typeof groupLine>
export const groupsAnswer = z.strictObject({ groups: z.array(groupLine) })

export const episodesAnswer = z.strictObject({
  episodes: z.array(episodeLine),
  /** There are more; ask for those after this id. */
  next: z.string().optional(),
})
export type EpisodesAnswer = z.infer<typeof episodesAnswer>

const messageHead = z.strictObject({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  /** Characters of all its texts. */
  chars: z.int(),
  /** Which reply it is, if it was sampled. */
  reply: z.int().optional(),
})

const replyLine = z.strictObject({
  version: z.strictObject({ id: z.string(), step: z.int() }),
  sequence: z.int(),
  /** Where its ids begin in the sequence, and how many they are. */
  start: z.int(),
  length: z.int(),
  stop: z.enum(['stop', 'length']),
  trained: z.boolean(),
  /** Why its sequence begins anew. */
  restart: z.string().optional(),
  malformed: z.array(z.strictObject({ error: z.string(), raw: z.string() })),
  agent: z.string().optional(),
  purpose: z.string().optional(),
  ms: z.number(),
})
export type ReplyLine = z.infer<typeof replyLine>

export const episodeAnswer = z.strictObject({
  episode: episodeLine,
  damage: z.string().optional(),
  /** False while only its journal is there. */
  ended: z.boolean(),
  seed: z.int().optional(),
  tags: z.array(z.string()),
  tools: z.array(
    z.strictObject({
      name: z.string(),
      description: z.string().optional(),
      parameters: z.string(),
    }),
  ),
  messages: z.array(messageHead),
  replies: z.array(replyLine),
  calls: z.array(
    z.strictObject({
      name: z.string(),
      ms: z.number(),
      error: z.string().optional(),
      message: z.int().optional(),
    }),
  ),
  metrics: z.record(z.string(), z.number()),
  training: z
    .strictObject({
      step: z.int(),
      advantage: z.number().optional(),
      untrained: z.string().optional(),
      data: z.array(z.strictObject({ sequence: z.int(), length: z.int(), trained: z.int() })),
    })
    .optional(),
  failures: z.array(z.strictObject({ phase: z.string(), error: errorSchema })),
  /** Length of each token sequence. */
  sequences: z.array(z.int()),
  /** Whose texts the tokens are shown with; absent: only their ids are known. */
  tokenizer: z.string().optional(),
})
export type EpisodeAnswer = z.infer<typeof episodeAnswer>

/** The beginning of a text. */
const clip = z.strictObject({ text: z.string(), chars: z.int() })
export type Clip = z.infer<typeof clip>

const message = z.strictObject({
  index: z.int(),
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: clip,
  /** Images are recorded by size. */
  images: z.array(
    z.strictObject({
      format: z.string(),
      width: z.number(),
      height: z.number(),
      bytes: z.number(),
    }),
  ),
  reasoning: clip.optional(),
  calls: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      arguments: clip,
      error: z.string().optional(),
    }),
  ),
  reply: z.int().optional(),
  /** Of a tool's message: the call that it answers. */
  answers: z
    .strictObject({
      name: z.string().optional(),
      ms: z.number().optional(),
      error: z.string().optional(),
      /** What the tool gave, where the model was shown something else. */
      result: clip.optional(),
    })
    .optional(),
})
export type MessageBody = z.infer<typeof message>
export const messagesAnswer = z.strictObject({ messages: z.array(message) })

export const textAnswer = z.strictObject({ text: z.string(), from: z.int(), chars: z.int() })

export const tokensAnswer = z.strictObject({
  from: z.int(),
  /** Length of the sequence. */
  total: z.int(),
  ids: z.array(z.int()),
  /** Text of each; bytes that are no whole character as `\xE6`. Absent without a tokenizer that fits. */
  texts: z.array(z.string()).optional(),
  /** Natural logarithm of the probability with which it was sampled; null where it wasn't. */
  logprobs: z.array(z.number().nullable()),
  /** 1: may be trained. */
  mask: z.array(z.int()),
  /** 0 where it isn't trained; absent when the episode isn't. */
  advantages: z.array(z.number()).optional(),
  /** Which reply it belongs to; −1 for what the model was shown. */
  replies: z.array(z.int()),
})
export type TokensAnswer = z.infer<typeof tokensAnswer>

export const findAnswer = z.strictObject({
  /** Places in the conversation, in order; `at` counts characters. */
  hits: z.array(
    z.strictObject({ message: z.int(), part: z.string(), at: z.int(), excerpt: z.string() }),
  ),
  /** There are more than an answer holds. */
  more: z.boolean(),
})
export type FindAnswer = z.infer<typeof findAnswer>

export const testCaseAnswer = z.strictObject({
  code: z.string(),
  /** What of the play the code can't repeat. */
  notes: z.array(z.string()),
})
