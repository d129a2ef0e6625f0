import {
  runEventSchema,
  type CheckpointEvent,
  type EndEvent,
  type FailureEvent,
  type MetricsEvent,
  type RunEvent,
  type StepEvent,
} from '@tiltyard/core'
import { z } from 'zod'

import type { BlobStore } from './blobs.ts'
import { describeFault, visibility, type Claim } from './claims.ts'
import { currentParts, parsePart, type Part, type WriterId } from './layout.ts'
import { readLines, type Fault } from './text-lines.ts'

/** Ends each batch of the log: the last one alone tells where the writer stands. */
export const markSchema = z.object({
  type: z.literal('mark'),
  /** Last completed step. */
  step: z.int().optional(),
  end: z.enum(['completed', 'interrupted', 'failed']).optional(),
  /** The writer let go. */
  closed: z.literal(true).optional(),
})
export type Mark = z.infer<typeof markSchema>

/** More than a mark takes, with the event before it in most cases. */
const TAIL_BYTES = 4_096

export async function listParts(blobs: BlobStore, folder: string): Promise<readonly Part[]> {
  const { blobs: infos } = await blobs.list(folder)
  return infos.map(parsePart).filter((part) => part !== undefined)
}

/** The last mark of a writer's log; undefined when it has none. */
export async function readMark(
  blobs: BlobStore,
  folder: string,
  parts: readonly Part[],
): Promise<Mark | undefined> {
  const last = parts.toSorted((a, b) => a.last - b.last).at(-1)
  if (last === undefined) return undefined
  const key = `${folder}/log/${last.name}`
  const short = await lastMark(blobs, key, TAIL_BYTES)
  return short ?? (last.bytes > TAIL_BYTES ? lastMark(blobs, key, last.bytes) : undefined)
}

async function lastMark(blobs: BlobStore, key: string, bytes: number): Promise<Mark | undefined> {
  const content = await blobs.read(key, { last: bytes })
  const lines = Buffer.from(content ?? [])
    .toString('utf8')
    .split('\n')
    .slice(0, -1)
  for (const line of lines.toReversed()) {
    if (!line.startsWith('{"type":"mark"')) continue
    const mark = parseJson(line, markSchema)
    if (mark.success) return mark.data
  }
  return undefined
}

function parseJson<Schema extends z.ZodType>(line: string, schema: Schema) {
  try {
    return schema.safeParse(JSON.parse(line))
  } catch {
    return { success: false } as const
  }
}

/** The events of the run itself, folded. */
export interface RunLog {
  readonly steps: readonly StepEvent[]
  /** In the order in which they were recorded. */
  readonly metrics: readonly MetricsEvent[]
  readonly checkpoints: readonly CheckpointEvent[]
  readonly failures: readonly FailureEvent[]
  /** Of the newest epoch. */
  readonly end?: EndEvent
  readonly faults: readonly Fault[]
}

const logLineSchema = z.union([runEventSchema, markSchema])

export async function readLog(
  blobs: BlobStore,
  folder: string,
  claims: readonly Claim[],
  listed?: readonly Part[],
): Promise<RunLog> {
  const parts = currentParts(listed ?? (await listParts(blobs, `${folder}/log`)))
  const isVisible = visibility(claims)
  const newest = claims.at(-1)?.epoch
  const steps = new Map<number, StepEvent>()
  const metrics = new Map<string, MetricsEvent>()
  const checkpoints = new Map<string, CheckpointEvent>()
  const failures = new Map<string, FailureEvent>()
  const faults: Fault[] = []
  let end: EndEvent | undefined

  const take = (event: RunEvent, writer: WriterId, line: string): void => {
    if (!isVisible(writer.epoch, stepOf(event))) return
    if (event.type === 'step') steps.set(event.step, event)
    if (event.type === 'metrics')
      metrics.set(JSON.stringify([event.split, event.evaluation, event.step]), event)
    if (event.type === 'checkpoint') checkpoints.set(event.name, event)
    if (event.type === 'failure') failures.set(line, event)
    if (event.type === 'end' && writer.epoch === newest) end = event
  }
  for await (const { part, lines } of readLines(blobs, `${folder}/log`, parts, faults)) {
    for (const line of lines) {
      try {
        const event = logLineSchema.parse(JSON.parse(line))
        if (event.type !== 'mark') take(event, part.writer, line)
      } catch (error) {
        const where = `${folder}/log/${part.name}`
        faults.push({ where, what: describeFault(error), torn: false })
      }
    }
  }
  return {
    steps: [...steps.values()].toSorted((a, b) => a.step - b.step),
    metrics: [...metrics.values()],
    checkpoints: [...checkpoints.values()]
      .filter(({ deleted }) => deleted !== true)
      .toSorted((a, b) => a.step - b.step),
    failures: [...failures.values()],
    ...(end === undefined ? {} : { end }),
    faults,
  }
}

/** The step whose repetition would repeat the event. A checkpoint after step 4 has seen 5 steps. */
function stepOf(event: RunEvent): number {
  if (event.type === 'checkpoint') return event.step - 1
  if ('step' in event && event.step !== undefined) return event.step
  return Number.NEGATIVE_INFINITY
}
