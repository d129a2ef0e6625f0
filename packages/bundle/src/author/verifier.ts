import type {
  AssistantMessage,
  EndReason,
  JsonObject,
  JsonValue,
  Logger,
  Message,
  PlayedCall,
  RandomStream,
  Sandbox,
  Score,
} from '@tiltyard/core'

import type { Chat } from '../chat/chat.ts'
import type { Change } from '../universe/universe.ts'
import type { TaskFacts } from './tool.ts'

/** What the task's gold calls do when they are carried out from its start. */
export interface GoldPlay<State = JsonValue> {
  /** One per gold call, in order. A failed one has `error`. */
  readonly calls: readonly PlayedCall[]
  readonly state: State
  readonly changes: readonly Change[]
}

/** A finished episode, as a verifier sees it. */
export interface VerifierContext<State = JsonValue> {
  readonly task: TaskFacts & {
    /** What the task says under `expect`; an empty object when it says nothing. */
    readonly expect: JsonObject
  }
  /** The step's own settings, from the manifest. */
  readonly options: JsonObject
  readonly end: EndReason
  /** The whole conversation, without the reply that a limit cut. */
  readonly messages: readonly Message[]
  readonly replies: readonly AssistantMessage[]
  /** Text of the last reply; empty when it called a tool, or there was none. */
  readonly answer: string
  /** Calls in the order of their replies, refused ones included. */
  readonly calls: readonly PlayedCall[]
  readonly universe: {
    /** As the episode began. */
    readonly start: State
    /** As it ended. */
    readonly state: State
    readonly changes: readonly Change[]
  }
  readonly sandbox?: Sandbox
  /** Carries out the task's gold in a universe of its own. @throws StateError when the task has none. */
  readonly gold: () => Promise<GoldPlay<State>>
  readonly random: RandomStream
  /** The models that whoever plays was given, by name. */
  readonly chats: Readonly<Record<string, Chat>>
  /** Aborted at the verifier's time limit. */
  readonly signal: AbortSignal
  readonly log: Logger
}

/** A number, true for 1 and false for 0, or a score with a note, or why there is none. */
export type Verdict = number | boolean | Score

/** Gives one scoring step. Throws only when it couldn't judge: that is a failure, never a zero. */
export type Verify<State = JsonValue> = (
  context: VerifierContext<State>,
) => Verdict | Promise<Verdict>

/** A verifier that needs no sandbox and may take long, such as a model that judges: it runs after the episode's slot is free. */
export interface Judge<State = JsonValue> {
  readonly judge: Verify<State>
}

export type Verifier<State = JsonValue> = Verify<State> | Judge<State>

export function isJudge(verifier: Verifier): verifier is Judge {
  return typeof verifier !== 'function'
}
