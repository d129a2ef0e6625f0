import { expect, test } from 'vitest'

import {
  createPrompt,
  lineage,
  mergeChunks,
  promptIds,
  tokenChunk,
  tokenPrompt,
  type ImageChunk,
} from '../src/tokens.ts'

const image: ImageChunk = { type: 'image', format: 'png', data: new Uint8Array([1]), tokens: 64 }

test('an extended prompt shares its parent and counts all positions', () => {
  const root = tokenPrompt([1, 2, 3])
  const next = createPrompt([tokenChunk([4]), image, tokenChunk([])], root)
  expect(next.parent).toBe(root)
  expect(next.length).toBe(3 + 1 + 64)
  expect(next.added).toHaveLength(2)
  expect(lineage(next)).toEqual([root, next])
})

test('chunks of the whole are merged: equal prompts have equal chunks', () => {
  const stepwise = createPrompt(
    [tokenChunk([3])],
    createPrompt([tokenChunk([2])], tokenPrompt([1])),
  )
  expect(stepwise.chunks()).toEqual(tokenPrompt([1, 2, 3]).chunks())
  expect(mergeChunks([tokenChunk([1]), tokenChunk([2]), image, tokenChunk([3])])).toEqual([
    tokenChunk([1, 2]),
    image,
    tokenChunk([3]),
  ])
})

test('ids of a prompt with an image are refused', () => {
  expect([...promptIds(createPrompt([tokenChunk([4])], tokenPrompt([1, 2])))]).toEqual([1, 2, 4])
  expect(() => promptIds(createPrompt([image]))).toThrow('holds an image')
})

test('a prompt of many turns is gathered without deep recursion', () => {
  let prompt = tokenPrompt([0])
  for (let turn = 1; turn < 20_000; turn += 1) prompt = createPrompt([tokenChunk([turn])], prompt)
  expect(promptIds(prompt)).toHaveLength(20_000)
})
