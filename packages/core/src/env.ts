import type { Contract } from './contract.ts'
import type { EndReason } from './end.ts'
import type { JsonValue } from './json.ts'
import type {
  AssistantMessage,
  Message,
  SystemMessage,
  ToolMessage,
  ToolSpec,
  UserMessage,
} from './messages.ts'
import type { EpisodeOutcome } from './score.ts'

/** What the policy is shown first. */
export interface Observation {
  readonly messages: readonly Message[]
  readonly tools?: readonly ToolSpec[]
}

export interface StepContext {
  readonly signal: AbortSignal
  /** How many tool calls may still run in this episode. Calls beyond it are not run and end the episode as cut. */
  readonly toolCallsLeft: number
  /** Longest time for one tool call, in milliseconds. */
  readonly toolMs?: number
}

/** A tool call as it was carried out, for the record. */
export interface PlayedCall {
  readonly id: string
  readonly name: string
  /** As the tool got them, or the raw text when it wasn't run. */
  readonly arguments: JsonValue
  readonly result: string
  /** Set when the result is an error that the model was told of. */
  readonly error?: string
  readonly ms: number
}

/** What followed a reply. */
export type Step =
  | {
      readonly done: false
      /** Tool results and, when a new turn begins, its user message. */
      readonly messages: readonly (ToolMessage | UserMessage)[]
      /** Set when a new turn begins. */
      readonly turn?: NewTurn
      readonly calls?: readonly PlayedCall[]
    }
  | {
      readonly done: true
      readonly messages?: readonly (ToolMessage | UserMessage)[]
      readonly calls?: readonly PlayedCall[]
    }

/** A later turn may change what stands at the head of the conversation; absent members stay as they were. */
export interface NewTurn {
  readonly system?: SystemMessage
  readonly tools?: readonly ToolSpec[]
}

/**
 * The simple face of an environment, one object per episode, used once: rollout turns it into an `Episode`. Order of calls:
 * `start`, then `step` for each reply, then `end` (once, whatever happened), `score`, `close`.
 */
export interface Env extends Contract<'env/1'> {
  /** Hash of the instance that is played: the task with its seed's choices made. Where given, a group with two of them is refused. */
  readonly instance?: string
  start(signal: AbortSignal): Promise<Observation>
  /**
   * Takes the policy's reply. Answers each of its calls under the call's id, in order; mistakes of the model become tool
   * messages. Throws only when the environment itself fails.
   */
  step(reply: AssistantMessage, context: StepContext): Promise<Step>
  /** The episode is over, for this reason. Stops whatever still runs. Called once. */
  end(reason: EndReason): Promise<void>
  /** Scores of the ended episode; may be called again after it failed. Cut episodes are scored as they stand. */
  score(signal: AbortSignal): Promise<EpisodeOutcome>
  /** Frees universe and sandbox. Called on every path; only `judge` may follow. */
  close(): Promise<void>
  /** Scores that need the record only, added to those of `score`. The slot is free by then. May be called again after it failed. */
  judge?(outcome: EpisodeOutcome, signal: AbortSignal): Promise<EpisodeOutcome>
}
