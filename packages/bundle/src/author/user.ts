import type { JsonObject, Message, RandomStream } from '@tiltyard/core'

import type { Chat } from '../chat/chat.ts'
import type { TurnInput } from '../task.ts'
import type { TaskFacts } from './tool.ts'

export interface UserContext {
  readonly task: TaskFacts
  /** The task's own settings for its user. */
  readonly options: JsonObject
  readonly now: number
  readonly random: RandomStream
  /** The models that whoever plays was given, by name. */
  readonly chats: Readonly<Record<string, Chat>>
}

/** Who gives the prompts of an episode, when the task doesn't list them. One object per episode. */
export interface User {
  /**
   * The next turn, made from the conversation so far (empty at first), or undefined when the user is done.
   * @throws when the user itself fails: the episode fails.
   */
  next(messages: readonly Message[], signal: AbortSignal): Promise<TurnInput | undefined>
  close?(): Promise<void>
}

export type UserFactory = (context: UserContext) => User
