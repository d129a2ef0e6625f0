import { DeadlineError, systemClock, type Clock } from '@tiltyard/core'

import type { Gateway } from '../gateway.ts'
import { orAborted } from '../waiting.ts'
import type { Agent, AgentRun } from './agent.ts'

export interface RemoteOptions {
  readonly gateway: Gateway
  /** An agent without call and heartbeat for so long is given up, in milliseconds. Default 600,000. */
  readonly unresponsiveMs?: number
  readonly clock?: Clock
}

/**
 * Agents on other machines: they fetch work with `POST /work/next` and the worker key, play it with the key that comes with it, and
 * say `POST {base}/rollout/end`. Rewards come by `POST {base}/rollout/reward`.
 */
export function remoteAgent(options: RemoteOptions): Agent {
  const { gateway, unresponsiveMs = 600_000, clock = systemClock } = options

  /** Rejects when the agent shows no sign of life for too long. */
  const watch = async ({ attempt }: AgentRun, signal: AbortSignal): Promise<never> => {
    for (;;) {
      const left = attempt.lastSeen + unresponsiveMs - clock.now()
      if (left <= 0) throw new DeadlineError('a sign of life of a remote agent', unresponsiveMs)
      await clock.sleep(left, signal)
    }
  }

  const taken = new WeakSet<AgentRun>()
  return {
    name: 'remote',
    began: (run) => taken.has(run),
    async run(run) {
      const { task, seed, attempt, context, signal } = run
      const { baseURL, apiKey, name } = context.model
      await gateway.work.offer(
        {
          rollout: attempt.rollout,
          attempt: attempt.attempt,
          task,
          seed,
          base_url: baseURL,
          api_key: apiKey,
          model: name,
        },
        signal,
      )
      taken.add(run)
      attempt.seen()
      const stopWatching = new AbortController()
      const watching = watch(run, stopWatching.signal)
      watching.catch(() => {})
      try {
        await orAborted(Promise.race([attempt.finished, watching]), signal)
        return {}
      } finally {
        stopWatching.abort()
      }
    },
  }
}
