import { asError, type Clock } from '@tiltyard/core'

import { asApiError, errorBody } from '../errors.ts'
import { SETTLED } from '../waiting.ts'

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
  /** The client is gone when it aborts. */
  readonly signal: AbortSignal
  /** Called once: the client has got all, or left before. */
  readonly closed: (delivered: boolean) => void
}

/**
 * A stream of server-sent events, made as fast as its reader takes them. An error in the middle becomes an event with an error and
 * then a broken connection, never a clean end.
 */
export function eventStream(
  pieces: AsyncGenerator<StreamPiece, void, undefined>,
  { clock, keepaliveMs, signal, closed }: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let next: Promise<IteratorResult<StreamPiece, void>> | undefined
  let reached = false
  let over = false
  let broken: Error | undefined
  const watched = new AbortController()
  const finish = () => {
    if (over) return
    over = true
    watched.abort(SETTLED)
    closed(reached)
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (broken !== undefined) {
      controller.error(broken)
      return
    }
    next ??= pieces.next()
    const result = await unlessQuiet(next, clock, keepaliveMs)
    if (over) return
    if (result === undefined) {
      controller.enqueue(encoder.encode(': keepalive\n'))
      return
    }
    next = undefined
    if (result.done === true) {
      finish()
      controller.close()
      return
    }
    if (result.value.terminal === true) reached = true
    controller.enqueue(encoder.encode(result.value.text))
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const leave = () => {
          finish()
          controller.error(asError(signal.reason))
        }
        if (signal.aborted) leave()
        else signal.addEventListener('abort', leave, { once: true, signal: watched.signal })
      },
      async pull(controller) {
        try {
          await pull(controller)
        } catch (error) {
          if (over) return
          broken = asError(error)
          finish()
          controller.enqueue(encoder.encode(`data: ${errorBody(asApiError(error))}\n\n`))
        }
      },
      cancel: finish,
    },
    // Nothing is made before it is asked for: what was handed out was taken.
    { highWaterMark: 0 },
  )
}

/** The promise's value, or undefined when it takes longer than that. */
export async function unlessQuiet<T>(
  promise: Promise<T>,
  clock: Clock,
  milliseconds: number,
): Promise<T | undefined> {
  const done = new AbortController()
  const quiet = clock.sleep(milliseconds, done.signal).then(
    () => undefined,
    () => undefined,
  )
  try {
    return await Promise.race([promise, quiet])
  } finally {
    done.abort(SETTLED)
  }
}

/** An event of the form that chat completions use. */
export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
