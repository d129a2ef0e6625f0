import { expect, test } from 'vitest'

import { checkDatum, trainedTokens, type Datum } from '../src/data.ts'
import { tokenChunk } from '../src/tokens.ts'

const good: Datum = {
  input: [tokenChunk([1, 2, 3])],
  targets: Int32Array.of(2, 3, 4),
  logprobs: Float32Array.of(0, -0.5, -0.25),
  advantages: Float32Array.of(0, 1, 1),
  mask: Float32Array.of(0, 1, 1),
}

test('a datum with arrays of one length is accepted', () => {
  expect(() => checkDatum(good, { name: 'ppo' })).not.toThrow()
  expect(trainedTokens(good)).toBe(2)
  expect(trainedTokens({ ...good, mask: Float32Array.of(0, 0, 1) })).toBe(1)
})

test.each([
  ['mask one too long', { mask: new Float32Array(4) }, 'mask has 4 positions, targets has 3'],
  [
    'logprobs one too short',
    { logprobs: new Float32Array(2) },
    'logprobs has 2 positions, targets has 3',
  ],
  [
    'input of another length',
    { input: [tokenChunk([1, 2])] },
    'input has 2 positions, targets has 3',
  ],
  ['a NaN advantage', { advantages: Float32Array.of(0, NaN, 0) }, 'advantages[1] is NaN'],
  [
    'an infinite logprob',
    { logprobs: Float32Array.of(0, 0, -Infinity) },
    'logprobs[2] is -Infinity',
  ],
])('F2: %s is refused by name', (_, change, message) => {
  expect(() => checkDatum({ ...good, ...change }, { name: 'ppo' })).toThrow(message)
})

test('a loss says which array it lacks', () => {
  expect(() => checkDatum(good, { name: 'cross_entropy' })).toThrow('cross_entropy needs weights')
  const { advantages: _, ...without } = good
  expect(() => checkDatum(without, { name: 'cispo' })).toThrow('cispo needs advantages')
})

test('an empty datum is refused', () => {
  expect(() => checkDatum({ input: [], targets: new Int32Array() }, { name: 'ppo' })).toThrow(
    'at least one position',
  )
})
