import type { ImagePart } from './messages.ts'

/** A PNG or JPEG by its bytes, with its size in pixels; undefined when the bytes are neither. */
export function readImage(data: Uint8Array): ImagePart | undefined {
  return readPng(data) ?? readJpeg(data)
}

const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

/** Its first chunk, IHDR, begins with width and height, big-endian. */
function readPng(data: Uint8Array): ImagePart | undefined {
  if (data.length < 24 || pngSignature.some((byte, index) => data[index] !== byte)) return undefined
  const view = new DataView(data.buffer, data.byteOffset)
  return {
    type: 'image',
    format: 'png',
    data,
    width: view.getUint32(16),
    height: view.getUint32(20),
  }
}

/** Walks its segments to the frame header (SOF), which holds height and width, big-endian. */
function readJpeg(data: Uint8Array): ImagePart | undefined {
  if (data[0] !== 0xff || data[1] !== 0xd8) return undefined
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let at = 2
  while (at + 9 <= data.length && data[at] === 0xff) {
    const marker = data[at + 1]!
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame)
      return {
        type: 'image',
        format: 'jpeg',
        data,
        width: view.getUint16(at + 7),
        height: view.getUint16(at + 5),
      }
    at += 2 + view.getUint16(at + 2)
  }
  return undefined
}
