import type { EndReason, JsonObject, JsonValue } from '@tiltyard/core'

import type { Attempt } from '../attempt.ts'
import type { GivenReward, RecordedReward } from '../rewards.ts'

/** A task: an id, and whatever else the agent needs, as plain JSON. */
export interface AgentTask extends JsonObject {
  readonly id: string
}

/** Where the policy is, for any client of OpenAI's protocols. */
export interface AgentModel {
  readonly baseURL: string
  readonly apiKey: string
  readonly name: string
  /** Hand it to the client, and no socket is needed. */
  readonly fetch: typeof fetch
}

/** What an agent function gets beside its task. */
export interface AgentContext {
  readonly model: AgentModel
  /** The same policy under the name of one of several agents. */
  as(agent: string): AgentModel
  /** Of the task's random choices: equal for all members of a group. */
  readonly seed: number
  /** Stop when it aborts: the attempt is over. */
  readonly signal: AbortSignal
  reward(reward: GivenReward): RecordedReward
}

/** What an agent leaves behind. */
export interface AgentOutput {
  /** The reward, under the source's first reward name, if the agent knows it. */
  readonly reward?: number
  /** For verifiers. */
  readonly output?: JsonValue
}

/** One run of an agent on a task. */
export interface AgentRun {
  readonly task: AgentTask
  readonly seed: number
  readonly attempt: Attempt
  readonly context: AgentContext
  readonly signal: AbortSignal
}

/** A way of running agents. */
export interface Agent {
  /** Tells agents apart; part of a source's fingerprint. */
  readonly name: string
  /** Runs the agent on a task to its end. Rejects when it fails; what it says of its end itself, `attempt.said`, goes before. Stops soon after the signal. */
  run(run: AgentRun): Promise<AgentOutput>
  /** Whether it began to play at all; what never began has no score. Absent: it did. */
  began?(run: AgentRun): boolean
  /** Stops what still runs; resolves when nothing does. After a cancellation at once, without time to tidy up. */
  stop?(run: AgentRun, end: EndReason): Promise<void>
}

/** What a verifier sees. */
export interface Verified {
  readonly task: AgentTask
  readonly output: JsonValue | undefined
  readonly end: EndReason
  readonly attempt: Attempt
  readonly signal: AbortSignal
}
