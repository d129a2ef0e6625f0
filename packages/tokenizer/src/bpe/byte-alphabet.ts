/**
 * Byte-level vocabularies spell bytes as printable characters: those that are printable in Latin-1 stand for themselves, the
 * other 68 follow from U+0100 on (GPT-2's table).
 */
export function byteAlphabet(): readonly string[] {
  let others = 0
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCharCode(isPrintable(byte) ? byte : 0x100 + others++),
  )
}

/** The bytes that a spelled token stands for; undefined when it has a character outside the alphabet. */
export function byteReader(
  alphabet: readonly string[],
): (spelled: string) => Uint8Array | undefined {
  const byteOf = new Int16Array(0x144).fill(-1)
  for (const [byte, char] of alphabet.entries()) byteOf[char.charCodeAt(0)] = byte
  return (spelled) => {
    const bytes = new Uint8Array(spelled.length)
    for (let at = 0; at < spelled.length; at += 1) {
      const unit = spelled.charCodeAt(at)
      const byte = unit < byteOf.length ? byteOf[unit]! : -1
      if (byte < 0) return undefined
      bytes[at] = byte
    }
    return bytes
  }
}

function isPrintable(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
}
