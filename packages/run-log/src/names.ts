import { ConfigError } from '@tiltyard/core'

/** Longest encoded name, so that it is a valid file name everywhere. */
const MAX_ENCODED_CHARS = 200

/** Names that Windows keeps for devices, and the ones that mean something in a run's own layout. */
const reserved = /^(?:(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)|step-\d+$)/

/**
 * A name from outside as a file name and key: reversible; plain ASCII; valid on Windows, POSIX and S3; different names stay
 * different where case doesn't count. `a`–`z`, digits, `-`, `_` and inner dots stay, every other byte of the UTF-8 text becomes
 * `~` and two hex digits: `Desk run/1` is `~44esk~20run~2f1`.
 * @throws ConfigError for a name that is empty, too long, or no well-formed text.
 */
export function encodeName(what: string, name: string): string {
  const text = encode(name)
  const refuse = (message: string) => new ConfigError(`${what} name`, [{ at: '', message }])
  if (name === '') throw refuse('it is empty; give it at least one character')
  if (text.length > MAX_ENCODED_CHARS) {
    throw refuse(
      `it takes ${text.length} characters as a file name, ${MAX_ENCODED_CHARS} fit; shorten it`,
    )
  }
  if (decode(text) !== name) throw refuse('it is not well-formed Unicode (a lone surrogate)')
  return text
}

/** The name that was encoded; undefined for a text that `encodeName` never makes. */
export function decodeName(text: string): string | undefined {
  const name = decode(text)
  return name === undefined || name === '' || encode(name) !== text ? undefined : name
}

function encode(name: string): string {
  let text = ''
  for (const byte of new TextEncoder().encode(name)) {
    const char = String.fromCharCode(byte)
    text += /[a-z0-9_.-]/.test(char) ? char : escaped(byte)
  }
  text = text.replace(/^\./, escaped(0x2e)).replace(/\.$/, escaped(0x2e))
  return reserved.test(text) ? escaped(text.charCodeAt(0)) + text.slice(1) : text
}

function escaped(byte: number): string {
  return `~${byte.toString(16).padStart(2, '0')}`
}

function decode(text: string): string | undefined {
  if (!/^(?:[a-z0-9_.-]|~[0-9a-f]{2})*$/.test(text)) return undefined
  const bytes = [...text.matchAll(/~(..)|(.)/g)].map(([, hex, char = '']) =>
    hex === undefined ? char.charCodeAt(0) : Number.parseInt(hex, 16),
  )
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))
  } catch {
    return undefined
  }
}
