import type { Tokenizer } from '@tiltyard/core'

/**
 * The simplest tokenizer that keeps every promise: ids 0–255 are bytes of UTF-8, the markers follow in their order. For testing a
 * renderer without its model's vocabulary: what it writes can be decoded and compared as text.
 */
export function byteTokenizer(markers: readonly string[], name = 'bytes'): Tokenizer {
  const encoder = new TextEncoder()
  const ids = new Map(markers.map((marker, index) => [marker, 256 + index]))
  const bytes = (id: number) => {
    if (Number.isInteger(id) && id >= 0 && id < 256) return Uint8Array.of(id)
    return encoder.encode(markers[id - 256] ?? '')
  }
  const stream = () => {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    return {
      push: (pushed: ArrayLike<number>) =>
        Array.from(pushed, (id) => decoder.decode(bytes(id), { stream: true })).join(''),
      end: () => decoder.decode(),
    }
  }
  return {
    specVersion: 'tokenizer/1',
    name,
    fingerprint: `${name}:${JSON.stringify(markers)}`,
    vocabularySize: 256 + markers.length,
    markers: ids,
    encode: (text) => Int32Array.from(encoder.encode(text)),
    decode(given) {
      const whole = stream()
      return whole.push(given) + whole.end()
    },
    bytes,
    stream,
  }
}
