import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether an `Authorization` header holds one of the keys; without keys everybody is let in. */
export function isLetIn(header: string | undefined, keys: readonly string[]): boolean {
  if (keys.length === 0) return true
  const given = hash((header ?? '').replace(/^Bearer /i, ''))
  // All are compared, by their hashes, so that the time it takes says nothing about a key.
  return keys.map((key) => timingSafeEqual(hash(key), given)).includes(true)
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Whether a browser's page of another origin asks; programs send no origin. */
export function isForeignPage(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined) return false
  try {
    return new URL(origin).host !== host
  } catch {
    return true
  }
}
