import type { GroupKey, GroupPlan } from '@tiltyard/core'

import { createCancellation } from './cancellation.ts'
import type { RolloutOptions } from './options.ts'
import { playGroupOf } from './play-group.ts'
import type { PlayedGroup } from './played.ts'
import { createRun } from './run.ts'

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
  const run = createRun(options)
  const cancellation = createCancellation(options.signal)
  const results: (() => PlayedGroup)[] = []
  let wake: (() => void) | undefined
  const put = (result: () => PlayedGroup) => {
    results.push(result)
    wake?.()
  }
  const playing = plans.map((plan, group) =>
    playGroupOf({ ...run, signal: cancellation.signal }, plan, { ...place, group }).then(
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
    cancellation.cancel(new Error('the rest of the batch is not wanted any more'))
    await Promise.all(playing)
    cancellation.unlink()
    run.alarms.close()
  }
}
