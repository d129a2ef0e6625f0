import { splitEvenly } from '../optimize/split.ts'

/** A group by its place in the dataset. */
export interface GroupRef {
  readonly batch: number
  readonly group: number
}

/** How a step is cut into calls. */
export interface Shape {
  /** Optimizer steps in a step. */
  readonly substeps: number
  /** Forward-backwards in a substep. */
  readonly minibatches: number
}

/** A run of groups for the learner; the last of a step has `last`. */
interface Part {
  readonly groups: readonly GroupRef[]
  readonly updates: number
  readonly last: boolean
}

interface StaleGroup {
  readonly ref: GroupRef
  readonly fate: 'replay' | 'drop'
}

/** Which groups make up which step. The `take…` members hand a thing out once; `takeStale` comes first, and again after each step. */
export interface Composer {
  takeRead(step: number): number | undefined
  received(batch: number, groups: number | undefined): void
  takePlays(step: number): readonly GroupRef[]
  played(ref: GroupRef, version: number, usable: boolean): void
  takeStale(step: number): readonly StaleGroup[]
  takePart(step: number): Part | undefined
  /** No step follows. */
  over(step: number): boolean
  /** From now on only this step matters. Gives the plays that are of no use any more. */
  confine(step: number): readonly GroupRef[]
  /** The plays under way, none of which matters any more. */
  abandon(): readonly GroupRef[]
  /** Played groups that belong to no step. */
  unused(): readonly GroupRef[]
  position(step: number): { readonly nextBatch: number; readonly unfinished: readonly GroupRef[] }
}

/** The parts of a step of so many groups: sizes, and the optimizer steps that follow each. */
export function partsOf(
  groups: number,
  { substeps, minibatches }: Shape,
): readonly { readonly size: number; readonly updates: number }[] {
  if (minibatches === 1 || groups === 0) return [{ size: groups, updates: substeps }]
  const indices = Array.from({ length: groups }, (_, index) => index)
  return splitEvenly(indices, substeps).flatMap((substep) => {
    const parts = splitEvenly(substep, minibatches)
    return parts.map((part, index) => ({
      size: part.length,
      updates: index === parts.length - 1 ? 1 : 0,
    }))
  })
}

export function refKey({ batch, group }: GroupRef): string {
  return `${batch}/${group}`
}

export function compareRefs(a: GroupRef, b: GroupRef): number {
  return a.batch - b.batch || a.group - b.group
}
