import type { Clock } from '@tiltyard/core'

import type { WorkQueue } from '../agents/work-queue.ts'
import { readBody } from '../dialects/fields.ts'
import { invalidKey } from '../errors.ts'
import { keyDigest, keyOf } from '../keys.ts'

const MAX_WAIT_S = 60
const MAX_BYTES = 64 * 1024

/** `{"wait": seconds}` → work, or 204 when none came in that time. */
export async function takeWork(
  request: Request,
  queue: WorkQueue,
  workerKey: string,
  clock: Clock,
): Promise<Response> {
  if (keyDigest(keyOf(request.headers) ?? '') !== keyDigest(workerKey)) throw invalidKey()
  const { body } = await readBody(request, MAX_BYTES)
  const wait = body.number('wait', 0, MAX_WAIT_S) ?? 0
  const over = new AbortController()
  const timer = new AbortController()
  const leave = () => over.abort()
  request.signal.addEventListener('abort', leave, { once: true })
  if (wait === 0) leave()
  else clock.sleep(wait * 1_000, timer.signal).then(leave, () => {})
  const work = await queue.next(over.signal)
  timer.abort()
  request.signal.removeEventListener('abort', leave)
  return work === undefined ? new Response(null, { status: 204 }) : Response.json(work)
}
