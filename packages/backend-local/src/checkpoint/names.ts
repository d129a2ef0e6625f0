/** Names that are devices on Windows, whatever follows a dot. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)$/

/**
 * A name from outside as a folder's: reversible, distinct also where case doesn't count, and valid on every system. Small letters,
 * digits, `-` and `_` stay; every other byte of its UTF-8 becomes `%xx`.
 */
export function folderName(name: string): string {
  const bytes = Array.from(new TextEncoder().encode(name))
  const encoded = bytes
    .map((byte) =>
      /[a-z0-9_-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : hex(byte),
    )
    .join('')
  return reserved.test(encoded) ? `${hex(bytes[0]!)}${encoded.slice(1)}` : encoded
}

/** The inverse of `folderName`; undefined for a folder that it did not name. */
export function nameOfFolder(folder: string): string | undefined {
  if (folder === '' || !/^(?:[a-z0-9_-]|%[0-9a-f]{2})*$/.test(folder)) return undefined
  try {
    const name = decodeURIComponent(folder)
    return folderName(name) === folder ? name : undefined
  } catch {
    return undefined
  }
}

function hex(byte: number): string {
  return `%${byte.toString(16).padStart(2, '0')}`
}
