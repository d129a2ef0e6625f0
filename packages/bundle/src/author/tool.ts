import type {
  JsonObject,
  JsonSchema,
  JsonValue,
  Logger,
  RandomStream,
  Sandbox,
} from '@tiltyard/core'
import type { z } from 'zod'

import type { Universe } from '../universe/universe.ts'

/** What a tool may know of the task: never its gold or what is expected. */
export interface TaskFacts {
  readonly id: string
  readonly tags: readonly string[]
  readonly meta: JsonObject
}

export interface ToolContext<State = JsonValue> {
  readonly universe: Universe<State>
  /** Present when the bundle works in a sandbox. */
  readonly sandbox?: Sandbox
  readonly task: TaskFacts
  /** Milliseconds since 1970, fixed by the task. Tools don't ask `Date`. */
  readonly now: number
  /** Seeded by the episode's instance, the tool's name and how often it was called. Tools don't ask `Math.random`. */
  readonly random: RandomStream
  /** Values of the secrets that the manifest names. */
  readonly secrets: Readonly<Record<string, string>>
  /** Aborted at the call's time limit and when the episode ends. */
  readonly signal: AbortSignal
  readonly log: Logger
}

/** What a tool gives back: text as it is, other values as JSON, nothing as `ok`. */
export type ToolResult = JsonValue | undefined | void

interface ToolBase {
  /** Letters, digits, `_` and `-`, at most 64. */
  readonly name: string
  readonly description?: string
  /** May run beside other calls of the same reply. Default false. */
  readonly parallel?: boolean
  /** True: an error other than a `ToolError` fails the episode instead of being told to the model. Default false. */
  readonly fatal?: boolean
  /** True: `run` gets the arguments as the model wrote them, and says itself what is wrong with them. Default false. */
  readonly ownChecks?: boolean
}

/** A tool by its code. Parameters as a zod object: `run` gets what the schema made of the arguments. */
export interface ZodTool<State, Parameters extends z.ZodObject> extends ToolBase {
  readonly parameters: Parameters
  run(args: z.output<Parameters>, context: ToolContext<State>): ToolResult | Promise<ToolResult>
}

/** A tool by its code. Parameters as a JSON Schema of type object: `run` gets the arguments as they came. */
export interface JsonSchemaTool<State> extends ToolBase {
  readonly parameters: JsonSchema
  run(args: JsonObject, context: ToolContext<State>): ToolResult | Promise<ToolResult>
}

/** A tool as a bundle holds it, its parameter types erased. */
export interface ToolDefinition<State = JsonValue> extends ToolBase {
  readonly parameters: z.ZodObject | JsonSchema
  run(args: never, context: ToolContext<State>): ToolResult | Promise<ToolResult>
}

/** An error that is the model's to read: it becomes the call's result. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  /** What the model is shown. */
  readonly shown: string

  /** @param options.shown Default: `error: <message>`. */
  constructor(message: string, options: ErrorOptions & { readonly shown?: string } = {}) {
    super(message, options)
    this.shown = options.shown ?? `error: ${message}`
  }
}

/** By name, so that two copies of this package in one program agree. */
export function isToolError(error: unknown): error is ToolError {
  return error instanceof Error && error.name === 'ToolError'
}
