import { asError } from '@tiltyard/core'

/** An answer before it takes the form of a `Response`: a server writes it as it is, which costs it much less. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Pieces
}

/** A body that is made as fast as it is taken. */
export interface Pieces {
  /** The next piece; undefined at the end. @throws when the answer breaks: then its connection must break too. */
  next(): Promise<string | undefined>
  /** Nobody takes more of it. Idempotent. */
  leave(): void
}

/** The answer for whoever called `fetch`. */
export function toResponse({ status, headers, body }: Answer, signal: AbortSignal): Response {
  return new Response(typeof body === 'string' ? body : toStream(body, signal), { status, headers })
}

/** An agent in this process may print what it catches; what the policy's service said of its credentials is not for it. */
function withoutCause({ name, message }: Error): Error {
  return Object.assign(new Error(message), { name })
}

function toStream(pieces: Pieces, signal: AbortSignal): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let leave: (() => void) | undefined
  const over = () => {
    if (leave !== undefined) signal.removeEventListener('abort', leave)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        leave = () => {
          pieces.leave()
          controller.error(asError(signal.reason))
        }
        if (signal.aborted) leave()
        else signal.addEventListener('abort', leave, { once: true })
      },
      async pull(controller) {
        try {
          const text = await pieces.next()
          if (signal.aborted) return
          if (text !== undefined) {
            controller.enqueue(encoder.encode(text))
            return
          }
          controller.close()
        } catch (error) {
          if (!signal.aborted) controller.error(withoutCause(asError(error)))
        }
        over()
      },
      cancel() {
        over()
        pieces.leave()
      },
    },
    // Nothing is made before it is asked for: what was handed out was taken.
    { highWaterMark: 0 },
  )
}
