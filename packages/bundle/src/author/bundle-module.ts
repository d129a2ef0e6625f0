import type { JsonObject, JsonValue } from '@tiltyard/core'
import type { z } from 'zod'

import type { TaskInput } from '../task.ts'
import type { JsonSchemaTool, ToolDefinition, ZodTool } from './tool.ts'
import type { UserFactory } from './user.ts'
import type { Judge, Verifier, Verify } from './verifier.ts'

/** What a bundle's module may ask for while it is loaded. Files that are read so are part of the bundle's fingerprint. */
export interface LoadContext {
  /** UTF-8 text of a file of the bundle's folder. */
  readonly readText: (path: string) => Promise<string>
  readonly readJson: (path: string) => Promise<JsonValue>
  /** The same for the folder of data that lies outside, when the manifest asks for one. */
  readonly data: {
    readonly readText: (path: string) => Promise<string>
    readonly readJson: (path: string) => Promise<JsonValue>
  }
  /** The manifest's settings, those that `loadBundle` was given in their place. */
  readonly settings: JsonObject
}

/**
 * What a bundle's module exports under the name `bundle`. Members that the manifest gives by files (tasks, universe, system
 * prompt) may instead come from here, as functions of what is read. Importing the module must do nothing.
 */
export interface BundleModule<State = JsonValue> {
  /** Throws when what the module reads isn't there, or a setting is wrong: then nothing else is read. */
  readonly check?: (load: LoadContext) => void | Promise<void>
  readonly tools?:
    | readonly ToolDefinition<State>[]
    | ((
        load: LoadContext,
      ) => readonly ToolDefinition<State>[] | Promise<readonly ToolDefinition<State>[]>)
  /** What the model is shown for a call of a tool that there isn't. Default: an error that names the nearest. */
  readonly unknownTool?: (name: string) => string
  readonly verifiers?: Readonly<Record<string, Verifier<State>>>
  readonly users?: Readonly<Record<string, UserFactory>>
  readonly tasks?: (load: LoadContext) => readonly TaskInput[] | Promise<readonly TaskInput[]>
  readonly universe?: (load: LoadContext) => State | Promise<State>
  /** The system prompt; empty: none. */
  readonly system?: (load: LoadContext) => string | Promise<string>
  /** Names of evals and the ids of their tasks, in order. */
  readonly evals?: (
    load: LoadContext,
  ) =>
    | Readonly<Record<string, readonly string[]>>
    | Promise<Readonly<Record<string, readonly string[]>>>
}

/** Gives a tool its types: `run` sees the arguments as the zod schema makes them. */
export function defineTool<State = JsonValue, Parameters extends z.ZodObject = z.ZodObject>(
  tool: ZodTool<State, Parameters>,
): ToolDefinition<State>
export function defineTool<State = JsonValue>(tool: JsonSchemaTool<State>): ToolDefinition<State>
export function defineTool(tool: ToolDefinition): ToolDefinition {
  return tool
}

export function defineVerifier<State = JsonValue>(verify: Verify<State>): Verifier<State> {
  return verify
}

/** A verifier that runs after the episode's slot is free; it needs the record only. */
export function defineJudge<State = JsonValue>(judge: Verify<State>): Judge<State> {
  return { judge }
}

export function defineUser(user: UserFactory): UserFactory {
  return user
}

export function defineBundle<State = JsonValue>(bundle: BundleModule<State>): BundleModule<State> {
  return bundle
}

/** The definers for one universe's type, so that tools and verifiers needn't repeat it. */
export interface Definers<State> {
  readonly defineTool: {
    <Parameters extends z.ZodObject>(tool: ZodTool<State, Parameters>): ToolDefinition<State>
    (tool: JsonSchemaTool<State>): ToolDefinition<State>
  }
  readonly defineVerifier: (verify: Verify<State>) => Verifier<State>
  readonly defineJudge: (judge: Verify<State>) => Judge<State>
  readonly defineBundle: (bundle: BundleModule<State>) => BundleModule<State>
}

/** `const { defineTool, defineVerifier, defineBundle } = forUniverse<Store>()` */
export function forUniverse<State>(): Definers<State> {
  return {
    defineTool: (tool: ToolDefinition<State>) => tool,
    defineVerifier: (verify) => verify,
    defineJudge: (judge) => ({ judge }),
    defineBundle: (bundle) => bundle,
  }
}
