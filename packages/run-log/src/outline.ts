import { endName, type RunEvent } from '@tiltyard/core'
import { z } from 'zod'

import type { PlacedEvent } from './lines.ts'

/**
 * The outline says which values occur in which group of runs, so that a filter reads only groups that can hold an answer. An
 * entry is durable before the lines that it speaks of: it may promise too much, never too little.
 */
export const outlineEntrySchema = z.object({
  /** `train/step-0007`. */
  place: z.string(),
  /** Absent: too many to tell. */
  tasks: z.array(z.string()).optional(),
  ends: z.array(z.string()),
  /** Smallest and largest reward; absent when none was given. */
  rewards: z.tuple([z.number(), z.number()]).optional(),
})
export type OutlineEntry = z.infer<typeof outlineEntrySchema>

/** The word for an episode without an end, in filters. */
export const UNFINISHED = 'unfinished'

/** More tasks than this in one batch and group are not listed. */
const MAX_TASKS = 500

export interface Outline {
  add(place: string, event: PlacedEvent): void
  entries(): readonly OutlineEntry[]
}

interface Draft {
  readonly tasks: Set<string>
  readonly ends: Set<string>
  rewards: [number, number] | undefined
}

/** Gathers the entries of one batch. */
export function createOutline(): Outline {
  const drafts = new Map<string, Draft>()
  return {
    add(place, event) {
      let draft = drafts.get(place)
      if (draft === undefined) {
        draft = { tasks: new Set(), ends: new Set(), rewards: undefined }
        drafts.set(place, draft)
      }
      if ('task' in event) draft.tasks.add(event.task)
      if (event.type === 'call') draft.ends.add(UNFINISHED)
      if (event.type === 'episode') draft.ends.add(endName(event.end))
      if (event.type === 'score' && 'reward' in event.reward) {
        const { reward } = event.reward
        const [low, high] = draft.rewards ?? [reward, reward]
        draft.rewards = [Math.min(low, reward), Math.max(high, reward)]
      }
    },
    entries: () =>
      [...drafts].map(([place, { tasks, ends, rewards }]) => ({
        place,
        ...(tasks.size > MAX_TASKS ? {} : { tasks: [...tasks] }),
        ends: [...ends],
        ...(rewards === undefined ? {} : { rewards }),
      })),
  }
}

/** What a filter asks of single episodes. */
export interface ValueFilter {
  readonly task?: string | undefined
  readonly end?: string | undefined
  readonly minReward?: number | undefined
  readonly maxReward?: number | undefined
}

/** Whether a group of runs with these entries can hold an episode that the filter wants. */
export function mayHold(entries: readonly OutlineEntry[], filter: ValueFilter): boolean {
  const { task, end, minReward, maxReward } = filter
  const some = (test: (entry: OutlineEntry) => boolean) => entries.some(test)
  if (task !== undefined && !some(({ tasks }) => tasks?.includes(task) ?? true)) return false
  if (end !== undefined && !some(({ ends }) => ends.includes(end))) return false
  if (minReward !== undefined && !some(({ rewards }) => (rewards?.[1] ?? -Infinity) >= minReward))
    return false
  return maxReward === undefined || some(({ rewards }) => (rewards?.[0] ?? Infinity) <= maxReward)
}

/**
 * A look into an entry's text before it is parsed: the place of an entry that speaks for nothing of what the filter asks. Undefined:
 * parse it. Steps name hundreds of tasks, so most of an outline is of no use to most filters.
 */
export function idleEntry(filter: ValueFilter): (line: string) => string | undefined {
  const { task, end, minReward, maxReward } = filter
  if (minReward !== undefined || maxReward !== undefined) return () => undefined
  const [taskText, endText] = [task, end].map((text) => text && JSON.stringify(text))
  return (line) => {
    // An entry without tasks has too many to tell.
    if (taskText !== undefined && (line.includes(taskText) || !line.includes(TASKS)))
      return undefined
    if (endText !== undefined && line.includes(endText)) return undefined
    return placePattern.exec(line)?.[1]
  }
}

const TASKS = ',"tasks":['
const placePattern = /^\{"place":"([^"\\]*)",.*\}$/

/** Whether an event belongs to a step's folder, not to the run's log. */
export function isPlaced(event: RunEvent): event is PlacedEvent {
  return 'key' in event && event.key !== undefined
}
