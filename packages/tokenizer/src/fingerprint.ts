import { createHash } from 'node:crypto'

/** SHA-256 in hex of parts, each with its length before it, so that no two lists of parts run into one. */
export function fingerprint(parts: readonly (string | Int32Array)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) {
    const bytes =
      typeof part === 'string'
        ? Buffer.from(part)
        : Buffer.from(part.buffer, part.byteOffset, part.byteLength)
    hash.update(`${bytes.length}\n`).update(bytes)
  }
  return hash.digest('hex')
}

/** Added tokens in the order of their ids, as text. */
export function addedTokensText(
  added: readonly { readonly id: number; readonly content: string }[],
): string {
  return JSON.stringify(
    added.map(({ id, content }) => [id, content] as const).toSorted(([a], [b]) => a - b),
  )
}
