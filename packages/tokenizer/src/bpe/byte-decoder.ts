import type { Tokenizer, TokenStream } from '@tiltyard/core'

const EMPTY = new Uint8Array(0)

/** An id whose bytes are no whole characters. */
const PARTIAL = Symbol('partial')

/** Ids → text. Ids whose bytes are whole characters are strings already; only runs of the others pass through a decoder. */
export function byteDecoder(
  size: number,
  bytesOf: (id: number) => Uint8Array | undefined,
): Pick<Tokenizer, 'decode' | 'bytes' | 'stream'> {
  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const texts: (string | typeof PARTIAL | undefined)[] = Array.from({ length: size })

  const textOf = (id: number): string | typeof PARTIAL => {
    const bytes = bytesOf(id)
    if (bytes === undefined) return ''
    let text: string | typeof PARTIAL
    try {
      text = strict.decode(bytes)
    } catch {
      text = PARTIAL
    }
    texts[id] = text
    return text
  }

  const tokenStream = (): TokenStream => {
    const lenient = new TextDecoder('utf-8', { ignoreBOM: true })
    let open = false
    const finish = () => {
      if (!open) return ''
      open = false
      return lenient.decode()
    }
    return {
      push(ids) {
        let text = ''
        for (let at = 0; at < ids.length; at += 1) {
          const id = ids[at]!
          const part = texts[id] ?? textOf(id)
          if (part === PARTIAL) {
            open = true
            text += lenient.decode(bytesOf(id), { stream: true })
          } else if (part !== '') {
            text += finish() + part
          }
        }
        return text
      },
      end: finish,
    }
  }

  return {
    bytes: (id) => bytesOf(id) ?? EMPTY,
    stream: tokenStream,
    decode(ids) {
      const stream = tokenStream()
      return stream.push(ids) + stream.end()
    },
  }
}
