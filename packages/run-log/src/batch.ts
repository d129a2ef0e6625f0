import {
  DataError,
  mistakesOf,
  runEventSchema,
  stringifyRecord,
  type MetricsEvent,
  type RunEvent,
} from '@tiltyard/core'

import { createPacker, type Packed, type Packer } from './blocks.ts'
import { placeFolder, type StreamKind } from './layout.ts'
import { lineOf } from './lines.ts'
import { createOutline, isPlaced } from './outline.ts'

/** Events that become durable together. */
export interface Batch {
  /** Characters taken in. */
  readonly size: number
  readonly events: number
  /** @throws DataError for an event that its schema refuses or that can't be written; the batch stays as it was. */
  add(event: RunEvent): void
  /** The bytes to write. Nothing is added afterwards. */
  seal(): Promise<SealedBatch>
}

export interface SealedBatch {
  readonly events: number
  readonly size: number
  /** JSON lines; empty when no step's folder is touched. */
  readonly outline: string
  readonly pieces: readonly Piece[]
  /** JSON lines of the run's log. */
  readonly log: string
  readonly metrics: readonly MetricsEvent[]
}

/** What goes to one stream of a step's folder. */
export interface Piece {
  readonly place: string
  readonly kind: StreamKind
  /** Concatenated gzip members. */
  readonly records: Uint8Array
  /** The lines, given where the records will begin in their blob. */
  readonly lines: (offset: number) => string
}

interface Draft {
  readonly place: string
  readonly kind: StreamKind
  readonly packer: Packer
  readonly lines: { readonly head: string; readonly packed: Packed }[]
}

export function createBatch(): Batch {
  const drafts = new Map<string, Draft>()
  const outline = createOutline()
  const log: string[] = []
  const metrics: MetricsEvent[] = []
  let size = 0
  let events = 0

  const draftOf = (place: string, kind: StreamKind): Draft => {
    const name = `${place} ${kind}`
    const draft = drafts.get(name) ?? { place, kind, packer: createPacker(), lines: [] }
    drafts.set(name, draft)
    return draft
  }
  return {
    get size() {
      return size
    },
    get events() {
      return events
    },
    add(given) {
      const event = checked(given)
      const text = stringifyRecord(event)
      if (isPlaced(event)) {
        const place = placeFolder(event.key)
        const head = JSON.stringify(lineOf(event))
        const { packer, lines } = draftOf(place, event.type === 'call' ? 'calls' : 'episodes')
        lines.push({ head, packed: packer.add(text) })
        outline.add(place, event)
        size += head.length
      } else {
        log.push(text)
        if (event.type === 'metrics') metrics.push(event)
      }
      size += text.length
      events += 1
    },
    async seal() {
      const pieces = await Promise.all([...drafts.values()].map(pieceOf))
      return {
        events,
        size,
        outline: jsonLines(outline.entries().map((entry) => JSON.stringify(entry))),
        pieces,
        log: jsonLines(log),
        metrics,
      }
    },
  }
}

function checked(event: RunEvent): RunEvent {
  const result = runEventSchema.safeParse(event)
  if (!result.success) {
    const faults = mistakesOf(result.error).map(({ at, message }) => `${at}: ${message}`)
    throw new DataError(`the "${event.type}" event can't be recorded: ${faults.join('; ')}`)
  }
  if (result.data.type === 'metrics') checkMetricNames(result.data)
  return result.data
}

/** Members of a line of `metrics.jsonl` beside the metrics. */
const lineMembers = ['split', 'evaluation', 'step']

function checkMetricNames({ values, timing }: MetricsEvent): void {
  const taken = lineMembers.find((name) => name in values || name in timing)
  if (taken !== undefined) throw new DataError(`a metric can't be called "${taken}"; rename it`)
}

async function pieceOf({ place, kind, packer, lines }: Draft): Promise<Piece> {
  const members = await packer.finish()
  const starts: number[] = []
  let end = 0
  for (const member of members) {
    starts.push(end)
    end += member.length
  }
  return {
    place,
    kind,
    records: Buffer.concat(members),
    lines: (offset) =>
      jsonLines(
        lines.map(({ head, packed: { block, start, bytes } }) => {
          const at = [offset + starts[block]!, members[block]!.length, start, bytes]
          return `${head.slice(0, -1)},"at":[${at.join(',')}]}`
        }),
      ),
  }
}

function jsonLines(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}
