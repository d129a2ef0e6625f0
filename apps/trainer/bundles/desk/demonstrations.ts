import { type Bundle, goldPlayer, playTask, type Task } from '@tiltyard/bundle'
import { type Conversation, randomStream } from '@tiltyard/core'

export interface DemonstrationOptions {
  /** The desk, loaded. */
  readonly bundle: Bundle
  readonly seed: number
  /** How many conversations. */
  readonly count: number
  /** Share of demonstrators that look up another customer's key and tell what they find. Default 0.5. */
  readonly wrongShare?: number
  /** Eval that the tasks are drawn from. Default `train`. */
  readonly split?: string
}

/**
 * Scripted conversations for a warm start. They show the layout, the calls and how to copy a result; a share of them copies
 * the wrong key into the call, so that a policy that was cloned from them still has something to learn from rewards.
 */
export async function deskDemonstrations({
  bundle,
  seed,
  count,
  wrongShare = 0.5,
  split = 'train',
}: DemonstrationOptions): Promise<readonly Conversation[]> {
  const tasks = (bundle.evals.get(split) ?? []).map((id) => bundle.tasks.get(id))
  const alike = byKind(tasks)
  const conversations: Conversation[] = []
  for (let index = 0; index < count; index += 1) {
    const random = randomStream(seed, 'desk', 'demonstration', index)
    const pick = (from: readonly Task[]) => from[random.integer(from.length)]!
    const task = pick(tasks)
    const shown = random.next() < wrongShare ? pick(alike.get(kindOf(task))!) : task
    const { conversation } = await playTask(bundle, task.id, goldPlayer(shown))
    conversations.push(conversation)
  }
  return conversations
}

function byKind(tasks: readonly Task[]): ReadonlyMap<string, readonly Task[]> {
  const kinds = new Map<string, Task[]>()
  for (const task of tasks) {
    const kind = kinds.get(kindOf(task))
    if (kind === undefined) kinds.set(kindOf(task), [task])
    else kind.push(task)
  }
  return kinds
}

/** The tags name the kind of question. */
function kindOf({ tags = [] }: Task): string {
  return tags.join(' ')
}
