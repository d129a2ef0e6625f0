import { ConfigError, type JsonValue, StateError } from '@tiltyard/core'

import { changesBetween } from './compare.ts'
import { changed, type Draft } from './draft.ts'
import { freezeJson } from './freeze.ts'
import { pointerParts, valueAt } from './pointer.ts'
import type { StartPatch, Universe, UniverseSource, UniverseState } from './universe.ts'

/** From so many members on, a change is laid over an object instead of copying it. */
const WIDE_MEMBERS = 64

type JsonRoot = JsonValue & object

/**
 * Universes that share one frozen base: opening one costs no copy, and a write copies only the small objects on the way to
 * what it changes. The base is frozen in place. @throws TypeError when it holds what JSON has no place for.
 */
export function jsonUniverse(base: JsonRoot): UniverseSource {
  const wide = new WeakSet<object>()
  freezeJson(base, (members, size) => {
    if (size >= WIDE_MEMBERS && !Array.isArray(members)) wide.add(members)
  })
  return {
    kind: 'json',
    open: (start) => {
      const opened = openState(base, wide)
      if (start.length === 0) return opened
      const { universe } = opened.handle()
      for (const patch of start) applyPatch(universe, patch)
      return openState(universe.state as JsonRoot, wide)
    },
  }
}

function openState(start: JsonRoot, wide: WeakSet<object>): UniverseState {
  let state = start
  return {
    start,
    get state() {
      return state
    },
    handle() {
      let released = false
      const universe: Universe = {
        get state() {
          return state
        },
        update<Result>(change: (draft: Draft<JsonValue>) => Result) {
          if (released)
            throw new StateError('the universe was written to after its tool call had ended')
          const after = changed(state, wide, (draft) => change(draft as Draft<JsonValue>))
          state = after.state
          return after.result
        },
      }
      return {
        universe,
        release: () => {
          released = true
        },
      }
    },
    changes: () => changesBetween(start, state),
  }
}

/** What is wrong with a patch, or undefined when it can be applied to `root`. */
function patchMistake(root: JsonValue, patch: StartPatch): string | undefined {
  const parts = pointerParts(patch.path)
  if (parts === undefined || parts.length === 0)
    return `"${patch.path}" is no JSON Pointer to a member, such as /users/ann/email`
  const parent = valueAt(root, parts.slice(0, -1))
  if (typeof parent !== 'object' || parent === null)
    return `nothing to set "${patch.path}" in: the universe has no object at "/${parts.slice(0, -1).join('/')}"`
  if (patch.value === undefined && !Object.hasOwn(parent, parts.at(-1)!))
    return `nothing to remove at "${patch.path}"`
  return undefined
}

function applyPatch(universe: Universe, patch: StartPatch): void {
  const mistake = patchMistake(universe.state, patch)
  if (mistake !== undefined)
    throw new ConfigError('start of a task', [{ at: patch.path, message: mistake }])
  const parts = pointerParts(patch.path)!
  universe.update((draft) => {
    const parent = valueAt(draft, parts.slice(0, -1)) as Record<string, JsonValue>
    const key = parts.at(-1)!
    if (patch.value === undefined) delete parent[key]
    else parent[key] = patch.value
  })
}
