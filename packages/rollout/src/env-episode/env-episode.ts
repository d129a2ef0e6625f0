import {
  checkContract,
  StateError,
  type EndReason,
  type Env,
  type Episode,
  type PlayContext,
  type PolicyHandle,
} from '@tiltyard/core'

import type { PlayOptions } from '../options.ts'
import { playEnv, playWithin, type Bounds } from './play-env.ts'

/**
 * Turns an Env into an Episode: the policy is asked for replies, the Env steps, limits and unreadable replies end the play.
 * @throws ConfigError when `env` fulfils another contract.
 */
export function envEpisode(env: Env, options: PlayOptions = {}): Episode {
  return episodeOf(env, options)
}

/** As `envEpisode`, with bounds that outlive the play. */
export function episodeOf(env: Env, options: PlayOptions, bounds?: Bounds): Episode {
  checkContract('env', 'env/1', env)
  let isPlayed = false
  let ended: Promise<void> | undefined
  const { instance } = env
  return {
    specVersion: 'episode/1',
    ...(instance === undefined ? {} : { instance }),
    async play(policy: PolicyHandle, context: PlayContext): Promise<EndReason> {
      if (isPlayed) throw new StateError('an episode is played once; open another')
      isPlayed = true
      return bounds === undefined
        ? playEnv(env, policy, context, options)
        : playWithin(bounds, env, policy, context, options)
    },
    end(reason) {
      ended ??= started(() => env.end(reason))
      return ended
    },
    score: (signal) => env.score(signal),
    close: () => env.close(),
    ...(env.judge === undefined ? {} : { judge: (outcome, signal) => env.judge!(outcome, signal) }),
  }
}

/** A promise also of what throws at once, so that one call is one call. */
async function started(work: () => Promise<void>): Promise<void> {
  return work()
}
