import type { JsonObject, RewardRule, SandboxLimits, ToolSpec } from '@tiltyard/core'

import type { ToolDefinition } from './author/tool.ts'
import type { UserFactory } from './author/user.ts'
import type { Verifier } from './author/verifier.ts'
import type { Task } from './task.ts'
import type { UniverseSource } from './universe/universe.ts'

/** Default time of the tools' world, in milliseconds since 1970. */
export const DEFAULT_CLOCK = Date.UTC(2026, 0, 1)

/** Limits that a bundle holds itself. What else bounds an episode is the player's. */
export interface BundleLimits {
  readonly toolMs: number
  readonly verifierMs: number
  readonly toolOutputChars: number
  readonly toolOutputKeep: 'head' | 'tail' | 'both'
}

export const bundleLimitDefaults: BundleLimits = {
  toolMs: 30_000,
  verifierMs: 60_000,
  toolOutputChars: 20_000,
  toolOutputKeep: 'both',
}

/** Arguments that fit the tool's schema, as its code wants them; or what is wrong with them. */
export type CheckedArguments = { readonly args: JsonObject } | { readonly error: string }

/** A tool that was checked: its code, what the model is shown, and the check of its arguments. */
export interface LoadedTool {
  readonly spec: ToolSpec
  readonly definition: ToolDefinition
  check(args: JsonObject): Promise<CheckedArguments>
}

/** A scoring step that was checked. */
export interface LoadedStep {
  readonly name: string
  readonly weight: number
  readonly options: JsonObject
  readonly verifier: Verifier
  /** Of a built-in verifier: what a task lacks for it, or undefined. */
  readonly lacks?: (task: Task) => string | undefined
}

/** The tasks of a bundle, in order. A task is parsed when it is asked for. */
export interface TaskTable {
  readonly ids: readonly string[]
  has(id: string): boolean
  /** @throws NotFoundError naming the nearest id. */
  get(id: string): Task
  /** Where the task is written: `tasks.jsonl:12`. */
  where(id: string): string
}

/** A bundle that was loaded: everything in it was checked. Immutable. */
export interface Bundle {
  readonly name: string
  readonly version: string | undefined
  readonly description: string | undefined
  readonly license: string | undefined
  readonly folder: string
  /** SHA-256 over its files, the data that it read, and its tools' schemas. */
  readonly fingerprint: string
  readonly tasks: TaskTable
  /** Names of evals and the ids of their tasks, in order; `all` is not among them. */
  readonly evals: ReadonlyMap<string, readonly string[]>
  /** In the order in which the model is shown them. */
  readonly tools: ReadonlyMap<string, LoadedTool>
  /** The module's answer to a call of a tool that there isn't. */
  readonly unknownTool: ((name: string) => string) | undefined
  readonly parallelCalls: boolean
  readonly steps: readonly LoadedStep[]
  /** The manifest's reward rule, or the only step's; undefined: whoever plays must name one. */
  readonly reward: RewardRule | undefined
  readonly users: Readonly<Record<string, UserFactory>>
  readonly universe: UniverseSource
  /** System prompt of tasks that bring none; empty: none. */
  readonly system: string
  /** Texts and images that tasks refer to, by path. */
  readonly texts: ReadonlyMap<string, string>
  readonly images: ReadonlyMap<string, BundleImage>
  readonly clock: number
  readonly limits: BundleLimits
  readonly sandbox: BundleSandbox | undefined
  readonly secrets: Readonly<Record<string, string>>
}

export interface BundleImage {
  readonly format: 'png' | 'jpeg'
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

export interface BundleSandbox {
  /** Files that each sandbox begins with, by path. */
  readonly files: ReadonlyMap<string, Uint8Array>
  readonly limits: SandboxLimits
}
