import type { JsonValue } from '@tiltyard/core'

import type { Draft } from './draft.ts'

/** A place where two universes differ. */
export interface Change {
  /** JSON Pointer (RFC 6901) from the universe's root; empty for the root. */
  readonly path: string
  /** Absent: nothing was there. */
  readonly before?: JsonValue
  /** Absent: nothing is there now. */
  readonly after?: JsonValue
}

/** What a tool sees of its episode's universe: a frozen value to read, and one way to write. */
export interface Universe<State = JsonValue> {
  /** As it is now. Frozen: a tool that writes to it throws. */
  readonly state: State
  /**
   * Changes the universe through a draft that is written to like an ordinary object. All or nothing: when `change` throws,
   * nothing was changed. @throws StateError after the tool call that it was made for has ended.
   */
  readonly update: <Result>(change: (draft: Draft<State>) => Result) => Result
}

/** A universe of one episode, as the bundle holds it. Isolated from every other. */
export interface UniverseState {
  /** As the episode began. */
  readonly start: JsonValue
  readonly state: JsonValue
  /** A handle for one tool call or verifier; `release` makes its later writes throw. */
  readonly handle: () => { readonly universe: Universe; readonly release: () => void }
  /** Against the task's start. */
  readonly changes: () => readonly Change[]
}

/** Sets a value before a task begins; absent value: removes what is there. */
export interface StartPatch {
  /** JSON Pointer. All but its last part must exist. */
  readonly path: string
  readonly value?: JsonValue | undefined
}

/** Makes the universe of each episode from one base. */
export interface UniverseSource {
  readonly kind: 'json'
  /** @throws ConfigError when a patch's path doesn't exist. */
  open(start: readonly StartPatch[]): UniverseState
}
