import type { GroupKey, GroupPlan } from '@tiltyard/core'

import type { RolloutOptions } from './options.ts'
import { playGroupOf } from './play-group.ts'
import type { PlayedGroup } from './played.ts'
import { createRun } from './run.ts'
import { linkedController } from './settle.ts'

/**
 * Plays groups at once, as far as the slots go, and gives each when it is over. The key's `group` is the plan's place in the
 * list. Begins with the first `next()`; leaving the loop cancels what is under way and waits for its cleanup.
 * @throws what `playGroup` rejects with; the other groups are cancelled and cleaned up before.
 */
export async function* playBatch(
  plans: readonly GroupPlan[],
  place: Omit<GroupKey, 'group'>,
  options: RolloutOptions,
): AsyncGenerator<PlayedGroup, void, undefined> {
  const { controller, unlink } = linkedController(options.signal)
  const run = createRun({ ...options, signal: controller.signal })
  const results: (() => PlayedGroup)[] = []
  let wake: (() => void) | undefined
  const put = (result: () => PlayedGroup) => {
    results.push(result)
    wake?.()
  }
  const playing = plans.map((plan, group) =>
    playGroupOf(run, plan, { ...place, group }).then(
      (played) => put(() => played),
      (error: unknown) =>
        put(() => {
          throw error
        }),
    ),
  )
  try {
    for (let given = 0; given < plans.length; given += 1) {
      while (results.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      yield results.shift()!()
    }
  } finally {
    controller.abort(new Error('the rest of the batch is not wanted any more'))
    await Promise.all(playing)
    unlink()
  }
}
