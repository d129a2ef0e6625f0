import { asError, type Clock } from '@tiltyard/core'

import { asApiError, errorBody } from '../errors.ts'
import { unlessQuiet } from '../waiting.ts'
import type { Pieces } from './answer.ts'
import type { Client } from './client.ts'

/** A piece of an event stream. With the terminal one the client knows all of the reply. */
export interface StreamPiece {
  readonly text: string
  readonly terminal?: boolean
}

/** Asks proxies on the way to pass on what comes at once; every answer that comes in pieces has it. */
export const unbuffered = { 'x-accel-buffering': 'no' } as const

export interface EventStreamOptions {
  readonly clock: Clock
  /** Silence after which a comment line is sent, in milliseconds. */
  readonly keepaliveMs: number
  readonly client: Client
  /** Called once: the client has got all, or left before. */
  readonly closed: (delivered: boolean) => void
}

/** Server-sent events. An error in the middle becomes an event with an error and then a break, never a clean end. */
export function eventStream(
  events: AsyncGenerator<StreamPiece, void, undefined>,
  { clock, keepaliveMs, client, closed }: EventStreamOptions,
): Pieces {
  let next: Promise<IteratorResult<StreamPiece, void>> | undefined
  let reached = false
  let over = false
  let broken: Error | undefined
  const finish = () => {
    if (over) return
    over = true
    callOff()
    closed(reached)
  }
  const callOff = client.onGone(finish)
  if (client.gone) finish()

  return {
    leave: finish,
    async next() {
      if (broken !== undefined) throw broken
      if (over) return undefined
      try {
        next ??= events.next()
        const result = await unlessQuiet(next, clock, keepaliveMs)
        if (result === undefined) return ': keepalive\n'
        next = undefined
        if (result.done === true) {
          finish()
          return undefined
        }
        if (result.value.terminal === true) reached = true
        return result.value.text
      } catch (error) {
        broken = asError(error)
        finish()
        return `data: ${errorBody(asApiError(error))}\n\n`
      }
    },
  }
}

/** An event of the form that chat completions use. */
export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
