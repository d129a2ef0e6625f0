import { describe, expect, test } from 'vitest'

import { formatMs, formatNumber, formatSigned, formatTick } from '../web/format.ts'
import { losses, plansFor } from '../web/metrics.ts'
import { fromSegment, given, number, oneOf, text, texts, toSegment } from '../web/search.ts'

describe('addresses', () => {
  test.each(['desk', '..', '.', '~', '~..', 'a/b', '%2e', ''])(
    'the run %j keeps its name in a path, and no segment is of dots alone',
    (name) => {
      expect(fromSegment(toSegment(name))).toBe(name)
      const { pathname } = new URL(
        `http://localhost/runs/${encodeURIComponent(toSegment(name))}/steps`,
      )
      expect(pathname.split('/')).toHaveLength(4)
    },
  )

  test('only what is understood is taken from a search', () => {
    const search = { a: 'x', n: '7', bad: 'seven', list: ['b', 3, {}], empty: '', o: { x: 1 } }
    expect([text(search, 'a'), text(search, 'o'), text(search, 'empty')]).toEqual([
      'x',
      undefined,
      undefined,
    ])
    expect([number(search, 'n'), number(search, 'bad'), number(search, 'empty')]).toEqual([
      7,
      undefined,
      undefined,
    ])
    expect([texts(search, 'list'), texts(search, 'a'), texts(search, 'none')]).toEqual([
      ['b', '3'],
      ['x'],
      undefined,
    ])
    expect([oneOf(search, 'a', ['x', 'y']), oneOf(search, 'n', ['x'])]).toEqual(['x', undefined])
    expect(given({ a: 1, b: undefined })).toEqual({ a: 1 })
  })
})

describe('numbers', () => {
  test.each([
    [0, '0'],
    [0.123456, '0.1235'],
    [-2.5, '-2.5'],
    [12345, '12,345'],
    [1234.56, '1,235'],
    [0.00001234, '1.23 e-5'],
    [null, 'not finite'],
    [undefined, '–'],
  ])('%j reads %s', (value, shown) => {
    expect(formatNumber(value)).toBe(shown)
  })

  test('signs, times and ticks are short', () => {
    expect([formatSigned(0.5), formatSigned(-0.5), formatSigned(0)]).toEqual(['+0.5', '-0.5', '0'])
    expect([0.25, 12, 1_500, 61_000, 3_720_000].map(formatMs)).toEqual([
      '0.25 ms',
      '12 ms',
      '1.5 s',
      '1 min 1 s',
      '1 h 2 min',
    ])
    expect([20_000, 2e-8, 0.25, 0].map(formatTick)).toEqual(['20K', '2e-8', '0.25', '0'])
  })
})

describe('plots', () => {
  test('a run’s plots are those of what it measures, each end reason a curve', () => {
    const plans = plansFor(['env/all/reward/total', 'env/all/stop/completed', 'env/all/stop/turns'])
    expect(plans.map(({ title, curves }) => [title, curves.map(([, label]) => label)])).toEqual([
      ['Reward', ['reward']],
      ['End reasons', ['completed', 'turns']],
    ])
  })

  test('the causes of a loss fit into one question', () => {
    expect(losses.length).toBeLessThanOrEqual(24)
  })
})
