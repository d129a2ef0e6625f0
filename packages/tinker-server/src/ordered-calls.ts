import type { Clock } from '@tiltyard/core'

import { Refusal } from './refusal.ts'

/**
 * The calls of one model, carried out in the order of their numbers whatever the order of arrival. A number that comes again with the
 * same content is the same call; with other content it is refused.
 */
export interface OrderedCalls {
  /**
   * Gives the id under which the call's result is fetched. `start` runs when all calls with smaller numbers have been started.
   * @throws Refusal 409
   */
  submit(
    number: number | undefined,
    content: string,
    start: () => Started,
    register: (work: Promise<object>) => string,
  ): string
  /** Starts what waits; nothing is started before. */
  begin(): void
  /** Fails what waits for a number that hasn't come for too long. */
  sweep(): void
  /** Fails what waits, and refuses what comes. */
  close(reason: string): void
}

/** A call under way. One that `blocks` is over before the next is started; else the learner itself keeps the order. */
export interface Started {
  readonly result: Promise<object>
  readonly blocks?: boolean
}

interface Waiting {
  readonly since: number
  readonly start: () => Promise<void>
  fail(reason: string): void
}

/** Numbers remembered for repeats. */
const REMEMBERED = 10_000

export function createOrderedCalls(clock: Clock, holeMs: number): OrderedCalls {
  const known = new Map<number, { readonly content: string; readonly id: string }>()
  const waiting = new Map<number, Waiting>()
  // Numbers begin at 1.
  let next = 1
  let tail: Promise<void> = Promise.resolve()
  let begun = false
  let closed: string | undefined

  const startReady = () => {
    if (!begun) return
    let ready = waiting.get(next)
    while (ready !== undefined) {
      waiting.delete(next)
      next += 1
      tail = tail.then(ready.start)
      ready = waiting.get(next)
    }
  }
  const failAll = (reason: string) => {
    for (const call of waiting.values()) call.fail(reason)
    waiting.clear()
  }

  return {
    submit(given, content, start, register) {
      if (closed !== undefined) throw new Refusal(404, closed)
      // Clients before 0.3 have no numbers, and come in order.
      const number = given ?? next + waiting.size
      const before = known.get(number)
      if (before !== undefined) {
        if (before.content === content) return before.id
        throw new Refusal(409, `seq_id ${number} was used for another request`)
      }
      if (number < next) throw new Refusal(409, `seq_id ${number} is over; the next is ${next}`)
      const work = new Promise<object>((resolve, reject) => {
        waiting.set(number, {
          since: clock.now(),
          start: async () => {
            try {
              const { result, blocks = false } = start()
              const settled = result.then(resolve, reject)
              if (blocks) await settled
            } catch (error) {
              reject(error instanceof Error ? error : new Error(String(error)))
            }
          },
          fail: (reason) => {
            reject(new Refusal(409, reason))
          },
        })
      })
      const id = register(work)
      known.set(number, { content, id })
      if (known.size > REMEMBERED) known.delete(known.keys().next().value!)
      startReady()
      return id
    },
    begin() {
      begun = true
      startReady()
    },
    sweep() {
      if (!begun) return
      const oldest = Math.min(...[...waiting.values()].map(({ since }) => since))
      if (waiting.size === 0 || clock.now() - oldest < holeMs) return
      const last = Math.max(...waiting.keys())
      failAll(`seq_id ${next} has not come for ${Math.round(holeMs / 1_000)} s`)
      next = last + 1
    },
    close(reason) {
      closed = reason
      failAll(reason)
    },
  }
}
