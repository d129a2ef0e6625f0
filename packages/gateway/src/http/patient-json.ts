import type { Clock } from '@tiltyard/core'

import { unlessQuiet } from '../waiting.ts'
import type { Answer } from './answer.ts'
import { unbuffered } from './event-stream.ts'

export interface PatientOptions {
  readonly clock: Clock
  /** Waits this long with the head of the answer, in milliseconds; then sends it, with a space at each interval. */
  readonly patienceMs: number
  readonly keepaliveMs: number
  readonly headers: Readonly<Record<string, string>>
  /** The client takes no more. */
  readonly left: () => void
}

/**
 * An answer in JSON that may take long. Clients give up on connections that stay silent, so after a while the head goes out, and
 * then spaces, which JSON allows. A failure after that breaks the connection: the client tries again.
 * @throws what `body` rejects with before the head goes out.
 */
export async function patientJson(
  body: Promise<string>,
  { clock, patienceMs, keepaliveMs, headers, left }: PatientOptions,
): Promise<Answer> {
  const full = { ...headers, 'content-type': 'application/json' }
  const text = await unlessQuiet(body, clock, patienceMs)
  if (text !== undefined) return { status: 200, headers: full, body: text }
  let ended = false
  const pieces = {
    async next() {
      if (ended) return undefined
      const rest = await unlessQuiet(body, clock, keepaliveMs)
      ended = rest !== undefined
      return rest ?? ' '
    },
    leave: left,
  }
  return { status: 200, headers: { ...full, ...unbuffered }, body: pieces }
}
