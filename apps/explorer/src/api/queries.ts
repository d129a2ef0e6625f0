import { splitSchema } from '@tiltyard/core'
import { z } from 'zod'

/** What may be asked. All of it comes as the query of an address, so numbers are read from text. */

/** Most of each that one answer holds. */
export const limits = {
  episodes: 1_000,
  messages: 50,
  tokens: 2_000,
  metrics: 24,
  hits: 500,
  /** Characters of a text that `episode/text` gives at once. */
  textChars: 200_000,
} as const

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, 'expected a whole number')
  .transform(Number)
const number = z
  .string()
  .refine((text) => text.trim() !== '' && Number.isFinite(Number(text)), 'expected a number')
  .transform(Number)
const upTo = (most: number) => wholeNumber.pipe(z.number().min(1).max(most)).default(most)

const run = { run: z.string().min(1) }
const place = { split: splitSchema, evaluation: z.string().min(1).optional() }

export const aboutQuery = z.strictObject({})
export const runsQuery = z.strictObject({})
export const runQuery = z.strictObject(run)

export const metricsQuery = z.strictObject({
  ...run,
  /** Names of metrics, a comma between them. */
  names: z
    .string()
    .min(1)
    .transform((text) => text.split(','))
    .pipe(z.array(z.string().min(1)).max(limits.metrics)),
})

/** Everything that was measured in one step. */
export const numbersQuery = z.strictObject({ ...run, ...place, step: wholeNumber })

export const groupsQuery = z.strictObject({ ...run, ...place, step: wholeNumber })

export const episodesQuery = z.strictObject({
  ...run,
  split: splitSchema.optional(),
  evaluation: z.string().min(1).optional(),
  step: wholeNumber.optional(),
  group: wholeNumber.optional(),
  task: z.string().min(1).optional(),
  end: z.string().min(1).optional(),
  minReward: number.optional(),
  maxReward: number.optional(),
  limit: upTo(limits.episodes),
  /** Id of the last episode of the answer before. */
  after: z.string().optional(),
})

const episode = { ...run, id: z.string().min(1) }
export const episodeQuery = z.strictObject(episode)

export const messagesQuery = z.strictObject({
  ...episode,
  from: wholeNumber,
  count: upTo(limits.messages),
})

export const textQuery = z.strictObject({
  ...episode,
  message: wholeNumber,
  part: z
    .string()
    .regex(
      /^(content|reasoning|result|call:\d{1,6})$/,
      'expected content, reasoning, result or call:<n>',
    ),
  from: wholeNumber,
  chars: upTo(limits.textChars),
})

export const tokensQuery = z.strictObject({
  ...episode,
  sequence: wholeNumber,
  from: wholeNumber,
  count: upTo(limits.tokens),
})

export const findQuery = z.strictObject({ ...episode, text: z.string().min(1).max(1_000) })
