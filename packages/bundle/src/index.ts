export type { BundleModule, Definers, LoadContext } from './author/bundle-module.ts'
export {
  defineBundle,
  defineTool,
  defineUser,
  defineVerifier,
  forUniverse,
} from './author/bundle-module.ts'
export type {
  JsonSchemaTool,
  TaskFacts,
  ToolContext,
  ToolDefinition,
  ToolResult,
  ZodTool,
} from './author/tool.ts'
export { ToolError } from './author/tool.ts'
export type { User, UserContext, UserFactory } from './author/user.ts'
export type { GoldPlay, Verdict, Verifier, VerifierContext } from './author/verifier.ts'
export type { Bundle, BundleLimits, LoadedStep, LoadedTool, TaskTable } from './bundle.ts'
export { loadBundle } from './load/load-bundle.ts'
export type { LoadOptions } from './load/loading.ts'
export { bundleEnv } from './play/env.ts'
export { goldPlayer } from './play/gold-player.ts'
export type { Player, PlayTaskOptions, TaskPlay } from './play/play-task.ts'
export { playTask } from './play/play-task.ts'
export type { PlayOptions } from './play/env.ts'
export type { Task, TaskInput, TurnInput } from './task.ts'
