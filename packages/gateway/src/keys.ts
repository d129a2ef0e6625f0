import { hash, randomBytes, randomUUID } from 'node:crypto'

/** A secret of 256 bits. */
export function mintKey(): string {
  return `ty-${randomBytes(32).toString('base64url')}`
}

/**
 * What stands for a key in tables. A look-up by digest tells an attacker nothing about the keys that exist, whatever its
 * time: digests of guesses can't be steered towards the digest of a key.
 */
export function keyDigest(key: string): string {
  return hash('sha256', key, 'base64')
}

/** The key that a request brings, as `Authorization: Bearer` or `x-api-key`. */
export function keyOf(headers: Headers): string | undefined {
  const bearer = /^bearer\s+(\S+)\s*$/i.exec(headers.get('authorization') ?? '')?.[1]
  return bearer ?? headers.get('x-api-key') ?? undefined
}

/** An id of 122 random bits with a prefix that tells its kind. */
export function randomId(prefix: string): string {
  return prefix + randomUUID().replaceAll('-', '')
}
