import { z } from 'zod'

import { episodeKeySchema, groupKeySchema } from './keys.ts'
import {
  endReasonSchema,
  errorSummarySchema,
  float32Schema,
  int32Schema,
  jsonObjectSchema,
  jsonValueSchema,
  metricsSchema,
  policyVersionSchema,
  recorded,
  recordedMessageSchema,
  rewardSchema,
  scoreSchema,
  toolSpecSchema,
  type Recorded,
} from './values.ts'

/** Version of the format. */
export const RECORD_VERSION = 1

/** What a run is: written when it starts, before the first episode. */
export const runRecordSchema = recorded(
  z.object({
    version: z.literal(RECORD_VERSION),
    name: z.string().min(1),
    /** Milliseconds since 1970. */
    startedAt: z.number(),
    seed: z.int(),
    /** The effective configuration, secrets left out. */
    config: jsonObjectSchema,
    /** Of what makes the run what it is: renderer, dataset, model, loss. */
    fingerprints: z.record(z.string(), z.string()),
    /** Of packages, node, executor. */
    versions: z.record(z.string(), z.string()),
    git: z.object({ commit: z.string(), dirty: z.boolean() }).optional(),
  }),
)
export type RunRecord = z.infer<typeof runRecordSchema>

/** A step is done: what a resumed run needs to go on after it. Written after the step's metrics. */
const stepEvent = z.object({
  type: z.literal('step'),
  step: z.int(),
  /** Place in the dataset, as its own data. */
  position: jsonValueSchema,
  /** Sums since the run began, over restarts: tokens, episodes, seconds. */
  totals: z.record(z.string(), z.number()),
})

/** Numbers of a step. `values` are the same in every run with the same seed; `timing` holds times, rates and lag. */
const metricsEvent = z.object({
  type: z.literal('metrics'),
  split: z.enum(['train', 'eval']),
  evaluation: z.string().optional(),
  step: z.int(),
  values: metricsSchema,
  timing: metricsSchema,
})

const checkpointRefSchema = z.object({ path: z.string(), kind: z.enum(['training', 'sampling']) })

/** A checkpoint is whole. `step` counts the steps that its weights have seen. */
const checkpointEvent = z.object({
  type: z.literal('checkpoint'),
  step: z.int(),
  name: z.string(),
  training: checkpointRefSchema.optional(),
  sampling: checkpointRefSchema.optional(),
  final: z.boolean().optional(),
  /** Set when it was deleted on purpose. */
  deleted: z.boolean().optional(),
})

/** A group is over: what became of it. */
const groupEvent = z.object({
  type: z.literal('group'),
  key: groupKeySchema,
  task: z.string(),
  fingerprint: z.string(),
  tags: z.array(z.string()).optional(),
  members: z.int(),
  /** Why it isn't trained; absent when it is, or for evaluations. */
  dropped: z.string().optional(),
})

/** One sampled reply. The tokens lie in the episode's sequences. */
const recordedReplySchema = z.object({
  version: policyVersionSchema,
  /** Place of the sampled ids. */
  sequence: z.int(),
  start: z.int(),
  length: z.int(),
  stop: z.enum(['stop', 'length']),
  temperature: z.number().optional(),
  topK: z.number().optional(),
  topP: z.number().optional(),
  seed: z.number().optional(),
  trained: z.boolean(),
  restart: z.string().optional(),
  malformed: z.array(z.object({ error: z.string(), raw: z.string() })).optional(),
  agent: z.string().optional(),
  purpose: z.string().optional(),
  ms: z.number(),
})

/** A token sequence that only grew: prompts, replies and observations as the model saw them. */
const recordedSequenceSchema = z.object({
  /** Ids; −1 at the positions of images. */
  ids: int32Schema,
  /** log-probability of each sampled id; 0 elsewhere. */
  logprobs: float32Schema,
  /** 1 where the id was sampled and may be trained, 0 elsewhere. */
  mask: int32Schema,
})

const recordedCallSchema = z.object({
  id: z.string(),
  name: z.string(),
  arguments: jsonValueSchema,
  result: z.string(),
  error: z.string().optional(),
  ms: z.number(),
})

/** A play is over. */
const episodeEvent = z.object({
  type: z.literal('episode'),
  key: episodeKeySchema,
  task: z.string(),
  fingerprint: z.string(),
  tags: z.array(z.string()).optional(),
  seed: z.int(),
  /** Hash of the task with its seed's choices made, where the play tells it: equal for the members of a group. */
  instance: z.string().optional(),
  /** Milliseconds since 1970. */
  startedAt: z.number(),
  ms: z.number(),
  end: endReasonSchema,
  /** Messages once, in order; later heads (system prompt, tools) as they changed. */
  messages: z.array(recordedMessageSchema),
  tools: z.array(toolSpecSchema),
  calls: z.array(recordedCallSchema),
  replies: z.array(recordedReplySchema),
  sequences: z.array(recordedSequenceSchema),
})

/** A call, or reply, of an episode under way: a journal for crashes; the episode event repeats it. Stands alone, so it names the task. */
const callEvent = z.object({
  type: z.literal('call'),
  key: episodeKeySchema,
  task: z.string(),
  fingerprint: z.string(),
  /** When the episode began; milliseconds since 1970. */
  startedAt: z.number(),
  /** Replies before it. */
  reply: z.int(),
  /** What was said since the event before it. */
  messages: z.array(recordedMessageSchema),
  calls: z.array(recordedCallSchema).optional(),
})

const scoreEvent = z.object({
  type: z.literal('score'),
  key: episodeKeySchema,
  scores: z.record(z.string(), scoreSchema),
  metrics: z.record(z.string(), z.number()),
  reward: rewardSchema,
})

/** What training made of an episode. */
const trainingEvent = z.object({
  type: z.literal('training'),
  key: episodeKeySchema,
  /** The step whose update it was in. */
  step: z.int(),
  advantage: z.number().optional(),
  /** Why it wasn't trained; absent when it was. */
  untrained: z.string().optional(),
  /** The data made of it: which sequence, how many positions, how many trained. */
  data: z.array(
    z.object({
      sequence: z.int(),
      length: z.int(),
      trained: z.int(),
      /** One per id of the sequence, 0 where it isn't trained; when they differ. Absent: `advantage` goes for every trained id. */
      advantages: float32Schema.optional(),
    }),
  ),
})

/** Something failed: an attempt, a scorer, a store. */
const failureEvent = z.object({
  type: z.literal('failure'),
  key: episodeKeySchema.optional(),
  step: z.int().optional(),
  phase: z.string(),
  error: errorSummarySchema,
})

/** The run came to its end. */
const endEvent = z.object({
  type: z.literal('end'),
  status: z.enum(['completed', 'interrupted', 'failed']),
  step: z.int(),
  at: z.number(),
  error: errorSummarySchema.optional(),
})

export const runEventSchema = recorded(
  z.discriminatedUnion('type', [
    stepEvent,
    metricsEvent,
    checkpointEvent,
    groupEvent,
    episodeEvent,
    callEvent,
    scoreEvent,
    trainingEvent,
    failureEvent,
    endEvent,
  ]),
)
export type RunEvent = z.infer<typeof runEventSchema>
export type StepEvent = Recorded<z.infer<typeof stepEvent>>
export type MetricsEvent = Recorded<z.infer<typeof metricsEvent>>
export type CheckpointEvent = Recorded<z.infer<typeof checkpointEvent>>
export type GroupEvent = Recorded<z.infer<typeof groupEvent>>
export type EpisodeEvent = Recorded<z.infer<typeof episodeEvent>>
export type CallEvent = Recorded<z.infer<typeof callEvent>>
export type ScoreEvent = Recorded<z.infer<typeof scoreEvent>>
export type TrainingEvent = Recorded<z.infer<typeof trainingEvent>>
export type FailureEvent = Recorded<z.infer<typeof failureEvent>>
export type EndEvent = Recorded<z.infer<typeof endEvent>>
