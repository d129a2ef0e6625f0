import { partsOf, type Composer, type GroupRef, type Shape } from './composer.ts'

interface Batch {
  readonly parts: readonly { readonly size: number; readonly updates: number }[]
  readonly settled: readonly boolean[]
  /** Parts handed out, and where the next one begins. */
  readonly given: number
  readonly start: number
}

/**
 * Step n is batch n. Its groups are trained in the batch's order, whatever arrives first, so the order of arrival decides nothing.
 */
export function plannedComposer(
  options: Shape & {
    readonly maxStaleness: number
    readonly steps?: number | undefined
    readonly from: number
  },
): Composer {
  const batches = new Map<number, Batch>()
  let plays: GroupRef[] = []
  let nextBatch = options.from
  let reading = false
  let bound = options.steps ?? Infinity
  let confined = false

  const unsettled = (keep: number | undefined) =>
    [...batches]
      .filter(([number]) => number !== keep)
      .flatMap(([batch, { settled }]) =>
        settled.flatMap((done, group) => (done ? [] : [{ batch, group }])),
      )

  return {
    takeRead(step) {
      if (reading || confined || nextBatch >= bound || nextBatch > step + options.maxStaleness)
        return undefined
      reading = true
      return nextBatch
    },
    received(batch, groups) {
      reading = false
      if (confined) return
      if (groups === undefined) {
        bound = Math.min(bound, batch)
        return
      }
      nextBatch = batch + 1
      batches.set(batch, {
        parts: partsOf(groups, options),
        settled: Array.from({ length: groups }, () => false),
        given: 0,
        start: 0,
      })
      plays.push(...Array.from({ length: groups }, (_, group) => ({ batch, group })))
    },
    takePlays() {
      const starting = plays
      plays = []
      return starting
    },
    played({ batch: number, group }) {
      const batch = batches.get(number)
      if (batch !== undefined)
        batches.set(number, { ...batch, settled: batch.settled.with(group, true) })
    },
    takeStale: () => [],
    takePart(step) {
      const batch = batches.get(step)
      if (batch === undefined) return undefined
      const { size, updates } = batch.parts[batch.given]!
      const end = batch.start + size
      if (!batch.settled.slice(batch.start, end).every(Boolean)) return undefined
      const groups = Array.from({ length: size }, (_, index) => ({
        batch: step,
        group: batch.start + index,
      }))
      const last = batch.given + 1 === batch.parts.length
      if (last) batches.delete(step)
      else batches.set(step, { ...batch, given: batch.given + 1, start: end })
      return { groups, updates, last }
    },
    over: (step) => step >= bound,
    confine(step) {
      if (confined) return []
      confined = true
      return unsettled(step)
    },
    abandon: () => unsettled(undefined),
    unused: () => [],
    position: (step) => ({ nextBatch: step, unfinished: [] }),
  }
}
