import { ConfigError } from '@tiltyard/core'

import { checkKey, type CheckedOptions } from './options.ts'

/** What a request is signed with: the key itself, or a short-lived token that the service gave for it. */
export interface Credentials {
  current(): Promise<string>
  /** The service refused this credential. Whether another one may do better. */
  refused(credential: string): boolean
  /** Puts an ellipsis in place of every secret known here. */
  readonly scrub: (text: string) => string
  /** From now on keys are exchanged for tokens by this call. */
  exchangeWith(exchange: (key: string) => Promise<string>): void
}

/** A token this near its end is renewed before it is used; one of a short life in the last quarter of it. */
const RENEW_BEFORE_MS = 60_000

export function createCredentials({ apiKey, baseUrl }: CheckedOptions): Credentials {
  const secrets = new Set<string>()
  let exchange: ((key: string) => Promise<string>) | undefined
  let token: string | undefined
  let renewAt = Number.POSITIVE_INFINITY
  let renewing: Promise<string> | undefined

  const known = (secret: string) => {
    secrets.add(secret)
    return secret
  }
  const askForKey = async () => {
    const key = typeof apiKey === 'string' ? apiKey : await apiKey()
    if (typeof key !== 'string')
      throw new ConfigError('tinker', [{ at: 'apiKey', message: 'the function gave no text' }])
    checkKey(key, baseUrl)
    return known(key)
  }
  const renew = async () => {
    const key = await askForKey()
    return exchange === undefined || key.startsWith('eyJ') ? key : known(await exchange(key))
  }
  if (typeof apiKey === 'string') known(apiKey)

  return {
    async current() {
      if (token !== undefined && Date.now() < renewAt) return token
      // Those who come meanwhile share the renewal.
      renewing ??= renew().finally(() => {
        renewing = undefined
      })
      const renewed = await renewing
      if (renewed !== token) renewAt = renewalOf(renewed)
      token = renewed
      return token
    },
    refused(credential) {
      if (credential !== token) return true
      token = undefined
      return exchange !== undefined || typeof apiKey === 'function'
    },
    scrub(text) {
      let clean = text
      for (const secret of secrets) clean = clean.replaceAll(secret, '…')
      return clean
    },
    exchangeWith(by) {
      exchange = by
      token = undefined
    },
  }
}

/** When a token that was given now is to be renewed, in milliseconds since 1970. What isn't a token never ends. */
function renewalOf(credential: string): number {
  const end = endOf(credential)
  const life = end - Date.now()
  // One that is over by this machine's clock may be good by the service's, which says so if it is not.
  return life > 0 ? end - Math.min(RENEW_BEFORE_MS, life / 4) : Number.POSITIVE_INFINITY
}

function endOf(credential: string): number {
  if (!credential.startsWith('eyJ')) return Number.POSITIVE_INFINITY
  try {
    const claims: unknown = JSON.parse(
      Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString(),
    )
    const { exp } = claims as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
