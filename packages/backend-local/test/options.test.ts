import { describe, expect, test } from 'vitest'

import { localBackend } from '../src/index.ts'
import { modelShapeSchema } from '../src/model/shape.ts'
import { trainingBytes } from '../src/options.ts'
import { tinyShape } from './support/tiny.ts'

const models = { tiny: { shape: tinyShape } }
const folder = 'checkpoints'

describe('options', () => {
  test('an unknown key names the nearest right one', () => {
    const wrong = { models, folder, thread: 2 }
    expect(() => localBackend(wrong)).toThrow('did you mean "threads"?')
    const shape = { ...tinyShape, kvHead: 2 }
    expect(() => localBackend({ models: { tiny: { shape } }, folder })).toThrow(
      'did you mean "kvHeads"?',
    )
  })

  test('sizes that don’t fit together are refused by the one to change', () => {
    const shape = { ...tinyShape, heads: 3 }
    expect(() => localBackend({ models: { tiny: { shape } }, folder })).toThrow(
      'kvHeads must divide heads',
    )
    const odd = { ...tinyShape, headSize: 7 }
    expect(() => localBackend({ models: { tiny: { shape: odd } }, folder })).toThrow(
      'headSize must be even',
    )
  })

  test('a model that would need more memory than allowed is refused, with what to lower', () => {
    const shape = { ...tinyShape, width: 2_048, hidden: 8_192, layers: 24, contextWindow: 8_192 }
    expect(() => localBackend({ models: { huge: { shape } }, folder })).toThrow(
      /models\.huge: .* more than memoryBytes allows \(2048 MiB\); lower microBatchTokens/,
    )
  })
})

describe('the estimate of memory', () => {
  const estimate = (more: object, tokens = 1_536) =>
    trainingBytes(modelShapeSchema.parse({ ...tinyShape, ...more }), tokens)

  test('grows with layers, width, context and the micro-batch', () => {
    const plain = estimate({})
    expect(estimate({ layers: 4 })).toBeGreaterThan(1.5 * plain)
    expect(estimate({ width: 64 })).toBeGreaterThan(plain)
    expect(estimate({ contextWindow: 512 })).toBeGreaterThan(plain)
    expect(estimate({}, 3_072)).toBeGreaterThan(1.8 * plain)
  })
})
