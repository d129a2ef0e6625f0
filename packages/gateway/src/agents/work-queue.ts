import type { JsonValue } from '@tiltyard/core'

/** What a remote agent gets: the task, and how to reach the policy in its name. */
export interface Work {
  readonly rollout: string
  readonly attempt: string
  readonly task: JsonValue
  /** Of the task's random choices: equal for all members of a group. */
  readonly seed: number
  readonly base_url: string
  readonly api_key: string
  readonly model: string
}

/** Work that waits for agents, and agents that wait for work; first come, first served. */
export interface WorkQueue {
  /** Resolves when an agent has taken it. Rejects, and withdraws it, when the signal aborts. */
  offer(work: Work, signal: AbortSignal): Promise<void>
  /** The next piece of work; undefined when none comes before the signal aborts. */
  next(signal: AbortSignal): Promise<Work | undefined>
}

interface Offer {
  readonly work: Work
  taken(): void
}

export function createWorkQueue(): WorkQueue {
  const offers: Offer[] = []
  const agents: ((offer: Offer) => void)[] = []
  return {
    offer(work, signal) {
      return new Promise((resolve, reject) => {
        signal.throwIfAborted()
        const withdraw = () => {
          const at = offers.indexOf(offer)
          if (at !== -1) offers.splice(at, 1)
          reject(signal.reason as Error)
        }
        const offer: Offer = {
          work,
          taken() {
            signal.removeEventListener('abort', withdraw)
            resolve()
          },
        }
        const agent = agents.shift()
        if (agent !== undefined) agent(offer)
        else {
          offers.push(offer)
          signal.addEventListener('abort', withdraw, { once: true })
        }
      })
    },
    next(signal) {
      const offer = offers.shift()
      if (offer !== undefined) {
        offer.taken()
        return Promise.resolve(offer.work)
      }
      if (signal.aborted) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        const give = (given: Offer) => {
          signal.removeEventListener('abort', leave)
          given.taken()
          resolve(given.work)
        }
        const leave = () => {
          const at = agents.indexOf(give)
          if (at !== -1) agents.splice(at, 1)
          resolve(undefined)
        }
        agents.push(give)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
  }
}
