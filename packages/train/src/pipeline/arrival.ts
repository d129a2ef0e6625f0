import {
  compareRefs,
  partsOf,
  refKey,
  type Composer,
  type GroupRef,
  type Shape,
} from './composer.ts'
import { isFresh } from './staleness.ts'

/** A step looks at no more than so many times `groupsPerStep` groups without use; then it takes what it has, if only nothing. */
const PATIENCE = 4

interface Arrived {
  readonly ref: GroupRef
  readonly version: number
}

/**
 * A step is the first `groupsPerStep` usable groups to arrive. Groups that give nothing to learn are replaced by the next of the
 * dataset. At most `(maxStaleness + 1) · groupsPerStep` groups are under way or waiting, so only a straggler can become stale.
 * Where nothing is usable a step comes to an end without training, so that a run says so instead of searching for ever.
 */
export function arrivalComposer(
  options: Shape & {
    readonly maxStaleness: number
    readonly groupsPerStep: number
    readonly stale: 'replay' | 'drop'
    readonly steps?: number | undefined
    readonly position?:
      | { readonly nextBatch: number; readonly unfinished: readonly GroupRef[] }
      | undefined
  },
): Composer {
  const { groupsPerStep, maxStaleness } = options
  const parts = partsOf(groupsPerStep, options)
  const playing = new Map<string, GroupRef>()
  let queue: GroupRef[] = [...(options.position?.unfinished ?? [])]
  let ready: Arrived[] = []
  let unusable: GroupRef[] = []
  let nextBatch = options.position?.nextBatch ?? 0
  let reading = false
  let ended = false
  /** Parts and groups that were handed out for the step, until it is published. */
  let given = 0
  let taken = 0
  let current = -1

  /** Groups that may still start, so that what waits is trained within the staleness bound and before the last step. */
  const room = (step: number) => {
    if (unusable.length >= PATIENCE * groupsPerStep) return 0
    const steps = Math.min(maxStaleness + 1, (options.steps ?? Infinity) - step)
    return steps * groupsPerStep - taken - playing.size - ready.length
  }
  const exhausted = () => ended && queue.length === 0 && playing.size === 0

  const handOut = (count: number, updates: number, last: boolean) => {
    const chosen = ready.slice(0, count).map(({ ref }) => ref)
    const groups = [...chosen, ...unusable].sort(compareRefs)
    ready = ready.slice(count)
    unusable = []
    given += 1
    taken += count
    return { groups, updates, last }
  }
  const turnTo = (step: number) => {
    if (step === current) return
    current = step
    given = 0
    taken = 0
  }

  return {
    takeRead(step) {
      if (reading || ended || queue.length > 0 || room(step) <= 0) return undefined
      reading = true
      return nextBatch
    },
    received(batch, groups) {
      reading = false
      if (groups === undefined) ended = true
      if (ended || groups === undefined) return
      nextBatch = batch + 1
      queue.push(...Array.from({ length: groups }, (_, group) => ({ batch, group })))
    },
    takePlays(step) {
      const starting = queue.slice(0, Math.max(0, room(step)))
      queue = queue.slice(starting.length)
      for (const ref of starting) playing.set(refKey(ref), ref)
      return starting
    },
    played(ref, version, usable) {
      if (!playing.delete(refKey(ref))) return
      if (usable) ready.push({ ref, version })
      else unusable.push(ref)
    },
    takeStale(step) {
      turnTo(step)
      const old = ready.filter(({ version }) => !isFresh(step, version, maxStaleness))
      if (old.length === 0) return []
      ready = ready.filter((arrived) => !old.includes(arrived))
      if (options.stale === 'replay') queue.unshift(...old.map(({ ref }) => ref))
      return old.map(({ ref }) => ({ ref, fate: options.stale }))
    },
    takePart(step) {
      if (step >= (options.steps ?? Infinity)) return undefined
      const { size, updates } = parts[given]!
      if (ready.length >= size) return handOut(size, updates, given + 1 === parts.length)
      const tired = unusable.length >= PATIENCE * groupsPerStep
      if (!tired && (!exhausted() || taken + ready.length === 0)) return undefined
      return handOut(ready.length, options.minibatches === 1 ? options.substeps : 1, true)
    },
    over: (step) =>
      step >= (options.steps ?? Infinity) || (exhausted() && taken + ready.length === 0),
    confine() {
      const refs = [...playing.values()]
      ended = true
      queue = []
      playing.clear()
      return refs
    },
    abandon() {
      const refs = [...playing.values()]
      playing.clear()
      return refs
    },
    unused: () => [...ready.map(({ ref }) => ref), ...unusable],
    position: () => ({
      nextBatch,
      unfinished: [...queue, ...playing.values(), ...ready.map(({ ref }) => ref)].sort(compareRefs),
    }),
  }
}
