import { z } from 'zod'

import type { Recorded } from './values.ts'

export const splitSchema = z.enum(['train', 'eval'])
export type Split = z.infer<typeof splitSchema>

export const groupKeySchema = z.strictObject({
  split: splitSchema,
  /** Which evaluation, when a run has several. */
  evaluation: z.string().min(1).optional(),
  /** The trainer's step when the group is played. */
  step: z.int().nonnegative(),
  /** Place in the step's batch. */
  group: z.int().nonnegative(),
})
/** A group of episodes by its place in a run. */
export type GroupKey = Recorded<z.infer<typeof groupKeySchema>>

export const episodeKeySchema = groupKeySchema.extend({
  member: z.int().nonnegative(),
  /** 0 for the first try; a retried episode is a new attempt. */
  attempt: z.int().nonnegative(),
})
/** An episode by its place in a run. */
export type EpisodeKey = Recorded<z.infer<typeof episodeKeySchema>>

/** The run group's name: `train/step-0007`, `eval/step-0000`, `eval/smoke/step-0000`. At least four digits. */
export function runGroupName(key: Pick<GroupKey, 'split' | 'evaluation' | 'step'>): string {
  const evaluation = key.evaluation === undefined ? '' : `/${key.evaluation}`
  return `${key.split}${evaluation}/step-${String(key.step).padStart(4, '0')}`
}

/** The group's id in its run: `train/step-0007/g3`. */
export function groupId(key: GroupKey): string {
  return `${runGroupName(key)}/g${key.group}`
}

/** The episode's id in its run: `train/step-0007/g3/m1/a0`. */
export function episodeId(key: EpisodeKey): string {
  return `${groupId(key)}/m${key.member}/a${key.attempt}`
}

const idPattern = /^(train|eval)(?:\/(.+))?\/step-(\d{4,})\/g(\d+)\/m(\d+)\/a(\d+)$/

/** The key of an id, or undefined when the text is none. */
export function parseEpisodeId(id: string): EpisodeKey | undefined {
  const match = idPattern.exec(id)
  if (match === null) return undefined
  const [, split, evaluation, step, group, member, attempt] = match
  return {
    split: split as Split,
    ...(evaluation === undefined ? {} : { evaluation }),
    step: Number(step),
    group: Number(group),
    member: Number(member),
    attempt: Number(attempt),
  }
}
