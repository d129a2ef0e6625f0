import type { Clock } from '@tiltyard/core'

import { asApiError, errorResponse } from '../errors.ts'
import { unbuffered, unlessQuiet } from './event-stream.ts'

export interface PatientOptions {
  readonly clock: Clock
  /** Waits this long with the head of the answer, in milliseconds; then sends it, with a space at each interval. */
  readonly patienceMs: number
  readonly keepaliveMs: number
  readonly signal: AbortSignal
  readonly headers: Readonly<Record<string, string>>
}

/**
 * An answer in JSON that may take long. Clients give up on connections that stay silent, so after a while the head goes out, and
 * then spaces, which JSON allows. A failure after that breaks the connection: the client tries again.
 */
export async function patientJson(
  body: Promise<string>,
  { clock, patienceMs, keepaliveMs, signal, headers }: PatientOptions,
): Promise<Response> {
  const full = { ...headers, 'content-type': 'application/json' }
  try {
    const text = await unlessQuiet(body, clock, patienceMs)
    if (text !== undefined) return new Response(text, { headers: full })
  } catch (error) {
    return errorResponse(asApiError(error))
  }
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await unlessQuiet(body, clock, keepaliveMs)
          controller.enqueue(encoder.encode(text ?? ' '))
          if (text !== undefined) controller.close()
        } catch (error) {
          controller.error(error)
        }
        if (signal.aborted) controller.error(signal.reason)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(stream, { headers: { ...full, ...unbuffered } })
}
