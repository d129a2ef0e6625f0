import { expect, test } from 'vitest'

import { readImage } from '../src/images.ts'

const png = Uint8Array.from(
  Buffer.from('89504e470d0a1a0a0000000d49484452000000030000012c0802000000', 'hex'),
)
// An application segment before the frame header.
const jpeg = Uint8Array.from(
  Buffer.from('ffd8ffe000044a46ffc000110802580320030122000311010311', 'hex'),
)

test('a PNG and a JPEG are known by their bytes, with their sizes', () => {
  expect(readImage(png)).toMatchObject({ format: 'png', width: 3, height: 300, data: png })
  expect(readImage(jpeg)).toMatchObject({ format: 'jpeg', width: 800, height: 600 })
})

test('a view into a larger buffer is read from where it begins', () => {
  const larger = Uint8Array.of(1, 2, 3, ...png)
  expect(readImage(larger.subarray(3))).toMatchObject({ width: 3, height: 300 })
})

test.each([
  ['nothing', []],
  ['half a header', png.slice(0, 20)],
  ['a JPEG without a frame', jpeg.slice(0, 6)],
  ['a text', Buffer.from('GIF89a and more than that, to be long enough')],
])('%s is no image', (_, bytes) => {
  expect(readImage(Uint8Array.from(bytes))).toBeUndefined()
})
