import { ConfigError, randomStream } from '@tiltyard/core'

import type { User, UserFactory } from '../author/user.ts'
import type { Bundle } from '../bundle.ts'
import type { Chat } from '../chat/chat.ts'
import { type Task, turnSchema } from '../task.ts'
import { factsOf } from './facts.ts'

interface UserOptions {
  readonly users?: Readonly<Record<string, UserFactory>>
  readonly chats: Readonly<Record<string, Chat>>
  readonly seed: number
  readonly now: number
}

/** Who gives an episode's prompts: the task's own list, or the user that it names. */
export function openUser(
  bundle: Bundle,
  task: Task,
  { users, chats, seed, now }: UserOptions,
): User {
  if (task.user === undefined) return listedTurns(task)
  const { use, options = {} } = task.user
  const factory = users?.[use] ?? bundle.users[use]!
  const user = factory({
    task: factsOf(task),
    options,
    now,
    random: randomStream(seed, 'user'),
    chats,
  })
  return {
    ...user,
    async next(messages, signal) {
      const turn = await user.next(messages, signal)
      if (turn !== undefined) checkTurn(bundle, task, turn)
      return turn
    },
  }
}

function listedTurns({ turns = [] }: Task): User {
  let index = 0
  return {
    next: () => {
      index += 1
      return Promise.resolve(turns[index - 1])
    },
  }
}

/** @throws ConfigError when a user's turn isn't one, or names what the bundle lacks. */
function checkTurn(bundle: Bundle, task: Task, turn: unknown): void {
  const result = turnSchema.safeParse(turn)
  const what = `task "${task.id}": a turn of its user`
  if (!result.success)
    throw new ConfigError(
      what,
      result.error.issues.map(({ path, message }) => ({ at: path.join('.'), message })),
    )
  const unknown = (result.data.tools ?? []).find((name) => !bundle.tools.has(name))
  if (unknown !== undefined)
    throw new ConfigError(what, [{ at: 'tools', message: `there is no tool "${unknown}"` }])
}
