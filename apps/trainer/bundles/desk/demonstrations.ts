import { type Bundle, goldPlayer, playTask, type Task } from '@tiltyard/bundle'
import { type Conversation, randomStream } from '@tiltyard/core'

export interface DemonstrationOptions {
  /** The desk, loaded. */
  readonly bundle: Bundle
  readonly seed: number
  /** How many conversations. */
  readonly count: number
  /** Share of demonstrators that make their last call twice, which is needless and earns nothing. Default 0.5. */
  readonly needlessShare?: number
  /** Whether a conversation begins with the system prompt and the tools. Default true. */
  readonly head?: boolean
  /** Eval that the tasks are drawn from. Default `train`. */
  readonly split?: string
}

/**
 * Scripted conversations for a warm start. They show the layout, the calls and how to copy what was said; a share of them is right but
 * roundabout, so that a policy that was cloned from them still has something to learn from rewards. Those without a head are
 * three times as short: what is to be copied is all that they hold, so copying is learned from them first.
 */
export async function deskDemonstrations({
  bundle,
  seed,
  count,
  needlessShare = 0.5,
  head = true,
  split = 'train',
}: DemonstrationOptions): Promise<readonly Conversation[]> {
  const tasks = (bundle.evals.get(split) ?? []).map((id) => bundle.tasks.get(id))
  const conversations: Conversation[] = []
  for (let index = 0; index < count; index += 1) {
    const random = randomStream(seed, 'desk', 'demonstration', index)
    const task = tasks[random.integer(tasks.length)]!
    const shown = random.next() < needlessShare ? withNeedlessCall(task) : task
    const { conversation } = await playTask(bundle, task.id, goldPlayer(shown))
    conversations.push(head ? conversation : withoutHead(conversation))
  }
  return conversations
}

function withNeedlessCall({ gold }: Task): Pick<Task, 'gold'> {
  const calls = gold?.calls ?? []
  return { gold: { ...gold, calls: [...calls, ...calls.slice(-1)] } }
}

function withoutHead({ messages }: Conversation): Conversation {
  return { messages: messages.filter(({ role }) => role !== 'system') }
}
