import { describe, expect, test } from 'vitest'

import { pythonFloat } from '../src/python-text.ts'

describe('pythonFloat', () => {
  test.each([
    [198, '198.0'],
    [0, '0.0'],
    [-0, '-0.0'],
    [71.96000000000001, '71.96000000000001'],
    [1e15, '1000000000000000.0'],
    [1e16, '1e+16'],
    [123456789012345680000, '1.2345678901234568e+20'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1.5e-7, '1.5e-07'],
    [-2.5, '-2.5'],
  ])('writes %d as Python does', (value, text) => {
    expect(pythonFloat(value)).toBe(text)
  })
})
