export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  /** When they cease to be valid. */
  readonly expiration?: Date
}

export type CredentialsSource = S3Credentials | (() => S3Credentials | Promise<S3Credentials>)

export interface CredentialsCache {
  /** The credentials of now; a function is asked once for all requests that wait. */
  readonly get: () => Promise<S3Credentials>
  /** They were refused as expired: ask again. */
  readonly forget: (credentials: S3Credentials) => void
}

/** Asked for this long before they expire: a request must be signed by valid ones when it arrives. */
const EARLY_MS = 60_000

export function cacheCredentials(
  source: CredentialsSource,
  now: () => number = Date.now,
): CredentialsCache {
  let kept: S3Credentials | undefined
  let asking: Promise<S3Credentials> | undefined
  const ask = async () => (typeof source === 'function' ? source() : source)
  const isValid = ({ expiration }: S3Credentials) =>
    expiration === undefined || expiration.getTime() - now() > EARLY_MS
  return {
    async get() {
      if (kept !== undefined && isValid(kept)) return kept
      asking ??= ask().finally(() => {
        asking = undefined
      })
      kept = await asking
      return kept
    },
    forget(credentials) {
      if (kept === credentials) kept = undefined
    },
  }
}
