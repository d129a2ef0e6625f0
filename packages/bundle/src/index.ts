export type { BundleModule, Definers, LoadContext } from './author/bundle-module.ts'
export {
  defineBundle,
  defineJudge,
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
export type {
  GoldPlay,
  Judge,
  Verdict,
  Verifier,
  VerifierContext,
  Verify,
} from './author/verifier.ts'
export type {
  Bundle,
  BundleImage,
  BundleLimits,
  BundleSandbox,
  CheckedArguments,
  LoadedStep,
  LoadedTool,
  TaskTable,
} from './bundle.ts'
export { bundleLimitDefaults, DEFAULT_CLOCK } from './bundle.ts'
export { aiSdkChat } from './chat/ai-sdk-chat.ts'
export type { AiSdkModel } from './chat/ai-sdk-chat.ts'
export type { Chat, ChatMessage, ChatOptions } from './chat/chat.ts'
export { conversationText, jsonIn } from './chat/conversation-text.ts'
export { endpointChat, MAX_CHAT_RETRY_MS } from './chat/endpoint-chat.ts'
export type { EndpointChatOptions } from './chat/endpoint-chat.ts'
export { samplerChat } from './chat/sampler-chat.ts'
export type { SamplerChatOptions } from './chat/sampler-chat.ts'
export type { BundleDatasetOptions, BundleDatasets } from './dataset.ts'
export { bundleDataset } from './dataset.ts'
export type { CheckOptions } from './inspect/check-bundle.ts'
export { checkBundle } from './inspect/check-bundle.ts'
export type { Transcript, TranscriptCall } from './inspect/expect-score.ts'
export { expectScore } from './inspect/expect-score.ts'
export type { AuthorFailure } from './inspect/failure.ts'
export { authorFailure } from './inspect/failure.ts'
export type { GoldReport, GoldReportOptions } from './inspect/gold-report.ts'
export { MAX_GOLD_ORDERS } from './inspect/check-plays.ts'
export { goldReport } from './inspect/gold-report.ts'
export { newBundle } from './inspect/new-bundle.ts'
export type { BundleReport, Finding, FindingKind } from './inspect/report.ts'
export { loadBundle } from './load/load-bundle.ts'
export type { LoadOptions } from './load/loading.ts'
export { DATA_VARIABLE } from './load/loading.ts'
export type { Manifest, RewardSpec } from './load/manifest.ts'
export { FORMAT_VERSION } from './load/manifest.ts'
export { MAX_PLACES_OF_A_MISTAKE } from './load/mistakes.ts'
export type { ImportModule } from './load/module.ts'
export type { ToolErrorHook } from './play/calls.ts'
export { bundleEnv, END_GRACE_MS } from './play/env.ts'
export type { PlayOptions } from './play/env.ts'
export { goldPlayer } from './play/gold-player.ts'
export type { Player, PlayTaskOptions, TaskPlay } from './play/play-task.ts'
export { playTask } from './play/play-task.ts'
export { ranking } from './reward/ranking.ts'
export {
  customRule,
  namedStep,
  onlyStep,
  productOf,
  threshold,
  weightedSum,
} from './reward/rules.ts'
export { rewardRule } from './reward/spec.ts'
export { bundleSource } from './source.ts'
export type { Task, TaskInput, TurnInput } from './task.ts'
export { MAX_TASK_ID_CHARS } from './task.ts'
export { changesBetween, sameJson } from './universe/compare.ts'
export type { Draft } from './universe/draft.ts'
export { jsonUniverse } from './universe/json.ts'
export type {
  Change,
  StartPatch,
  Universe,
  UniverseSource,
  UniverseState,
} from './universe/universe.ts'
