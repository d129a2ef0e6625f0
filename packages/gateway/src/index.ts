export { ApiError, type ApiErrorOptions } from './errors.ts'
export type { InferenceRoute } from './calls/request.ts'
export type { Tags } from './identity.ts'
export type { CallRecord, ParseOutcome, SampleRecord } from './calls/record.ts'
export {
  OWN_ALIAS,
  type Attempt,
  type AttemptOptions,
  type FilteredReply,
  type TrainFilter,
} from './attempt.ts'
export { createGateway, type Gateway, type GatewayCounts } from './gateway.ts'
export type { Client } from './http/client.ts'
export type { ForkCause, ReasoningMode } from './graph/call-graph.ts'
export type { EchoTolerance } from './graph/identity.ts'
export type { GatewayOptions } from './options.ts'
export type { GivenReward, RecordedReward, RewardBook, RewardTarget } from './rewards.ts'
export { serveGateway, type GatewayServer, type ServeOptions } from './server.ts'
export type {
  Agent,
  AgentContext,
  AgentModel,
  AgentOutput,
  AgentRun,
  AgentTask,
  Verified,
} from './agents/agent.ts'
export { agentSource, type AgentSourceOptions } from './agents/agent-source.ts'
export { commandAgent, type CommandOptions } from './agents/command.ts'
export type { AgentVerifier, OnAgentError } from './agents/episode.ts'
export { functionAgent, type AgentFunction } from './agents/function.ts'
export { remoteAgent, type RemoteOptions } from './agents/remote.ts'
export type { Work, WorkQueue } from './agents/work-queue.ts'
export type { Answer, Pieces } from './http/answer.ts'
export type { AgentEnd } from './http/rollout-routes.ts'
