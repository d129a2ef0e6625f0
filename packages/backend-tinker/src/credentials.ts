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

/** A token this near its end is renewed before it is used. */
const RENEW_BEFORE_MS = 60_000

export function createCredentials({ apiKey, baseUrl }: CheckedOptions): Credentials {
  const secrets = new Set<string>()
  let exchange: ((key: string) => Promise<string>) | undefined
  let token: string | undefined
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
      if (token !== undefined && !endsSoon(token)) return token
      // Those who come meanwhile share the renewal.
      renewing ??= renew().finally(() => {
        renewing = undefined
      })
      token = await renewing
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

/** Whether a token says of itself that it is about to end. What isn't a token never ends. */
function endsSoon(credential: string): boolean {
  if (!credential.startsWith('eyJ')) return false
  try {
    const claims: unknown = JSON.parse(
      Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString(),
    )
    const { exp } = claims as { exp?: unknown }
    return typeof exp === 'number' && exp * 1_000 - Date.now() < RENEW_BEFORE_MS
  } catch {
    return false
  }
}
