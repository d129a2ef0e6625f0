import type { JsonValue } from '@tiltyard/core'

/** A JSON object or list, by its members. */
export type Members = Readonly<Record<string, JsonValue>>

/** What stands in an overlay for a member that was removed. */
export const removed: unique symbol = Symbol('removed')

export type Edits = ReadonlyMap<string, JsonValue | typeof removed>

/** A wide object that was changed: a plain one with a few members replaced. */
export interface Overlay {
  /** Plain and frozen; never an overlay itself. */
  readonly base: Members
  readonly edits: Edits
}

const overlayKey: unique symbol = Symbol('overlay')

/**
 * An object that reads like a copy of `base` with the edits made, and costs the edits only. It can't be written to. A member
 * that was removed and set again stands where it stood. Where a
 * store holds thousands of records by id, copying the table of them would be most of a write.
 */
export function overlayObject(base: Members, edits: Edits): Members {
  const overlay: Overlay = { base, edits }
  return new Proxy<Members>(
    {},
    {
      get: (_, key) => {
        if (key === overlayKey) return overlay
        return typeof key === 'string' && hasMember(overlay, key)
          ? memberOf(overlay, key)
          : Reflect.get(Object.prototype, key)
      },
      has: (_, key) =>
        typeof key === 'string' ? hasMember(overlay, key) || key in Object.prototype : false,
      ownKeys: () => overlayKeys(overlay),
      getOwnPropertyDescriptor: (_, key) => {
        if (typeof key !== 'string' || !hasMember(overlay, key)) return undefined
        return {
          value: memberOf(overlay, key),
          writable: false,
          enumerable: true,
          configurable: true,
        }
      },
      set: () => false,
      defineProperty: () => false,
      deleteProperty: () => false,
    },
  )
}

/** The overlay behind an object, or undefined for a plain one. */
export function overlayOf(value: object): Overlay | undefined {
  return (value as { readonly [overlayKey]?: Overlay })[overlayKey]
}

export function hasMember({ base, edits }: Overlay, key: string): boolean {
  const edit = edits.get(key)
  return edit === undefined ? Object.hasOwn(base, key) : edit !== removed
}

export function memberOf({ base, edits }: Overlay, key: string): JsonValue | undefined {
  const edit = edits.get(key)
  if (edit === removed) return undefined
  if (edit !== undefined) return edit
  return Object.hasOwn(base, key) ? base[key] : undefined
}

/** Those of the base in their order, then those that were added. */
export function overlayKeys({ base, edits }: Overlay): string[] {
  const kept = Object.keys(base).filter((key) => edits.get(key) !== removed)
  const added = [...edits.keys()].filter(
    (key) => edits.get(key) !== removed && !Object.hasOwn(base, key),
  )
  return [...kept, ...added]
}
