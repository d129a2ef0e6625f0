import { PassThrough } from 'node:stream'

import { describe, expect, test } from 'vitest'

import { sideBySide, wrap } from '../../src/output/columns.ts'
import { plot } from '../../src/output/plot.ts'
import { createScreen, paint } from '../../src/output/screen.ts'

function capture(terminal: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY: terminal, columns: 40 })
  const parts: string[] = []
  stream.on('data', (chunk: Buffer) => parts.push(chunk.toString()))
  return { stream, text: () => parts.join('') }
}

describe('the screen', () => {
  test.each([
    ['a pipe', false, {}],
    ['CI with a terminal', true, { CI: '1' }],
    ['a dumb terminal', true, { TERM: 'dumb' }],
    ['a pipe with forced colour', false, { FORCE_COLOR: '1' }],
  ])('F73: %s sees no carriage return and no cursor code', async (_, terminal, env) => {
    const { stream, text } = capture(terminal)
    const screen = createScreen({ stream, env })
    screen.status('working')
    screen.line('step 1')
    screen.done()
    await new Promise(setImmediate)
    expect(text()).toBe('step 1\n')
  })

  test('a terminal sees one status line that gives way to lines that stay', async () => {
    const { stream, text } = capture(true)
    const screen = createScreen({ stream, env: {} })
    screen.status('working')
    screen.line('step 1')
    await new Promise(setImmediate)
    expect(text()).toBe('\r\u001b[2Kworking\r\u001b[2Kstep 1\n')
  })

  test('a status longer than the terminal is cut, so that it can be taken away', async () => {
    const { stream, text } = capture(true)
    createScreen({ stream, env: {} }).status('x'.repeat(100))
    await new Promise(setImmediate)
    expect(text()).toBe(`\r\u001b[2K${'x'.repeat(38)}…`)
  })

  test('F73: colour and live output are separate switches', () => {
    expect(
      createScreen({ stream: capture(false).stream, env: { FORCE_COLOR: '1' } }),
    ).toMatchObject({ colour: true, live: false })
    expect(createScreen({ stream: capture(true).stream, env: { NO_COLOR: '1' } })).toMatchObject({
      colour: false,
      live: true,
    })
    expect(paint({ colour: false }).red('x')).toBe('x')
    expect(paint({ colour: true }).red('x')).toBe('\u001b[31mx\u001b[0m')
  })
})

describe('the plot', () => {
  test('shows a rising curve from the lower left to the upper right', () => {
    const curve = Array.from({ length: 5 }, (_, x) => ({ x, y: x / 4 }))
    expect(
      plot(curve, [], { title: 'reward', xLabel: 'step', width: 16, height: 3, yRange: [0, 1] }),
    ).toEqual(['reward', '1.00 ┤         ·', '0.50 ┤     · ·', '0.00 ┤· ·', '      0  step  4'])
  })

  test('survives no points, one point, and a flat curve', () => {
    expect(plot([], [], { title: 't', xLabel: 'x' })).toEqual(['t', '(nothing to plot yet)'])
    expect(plot([{ x: 0, y: 1 }], [], { title: 't', xLabel: 'x' })).toHaveLength(14)
    expect(
      plot(
        [
          { x: 0, y: 1 },
          { x: 1, y: 1 },
        ],
        [{ x: 1, y: NaN }],
        { title: 't', xLabel: 'x' },
      ).join(''),
    ).toContain('·')
  })
})

describe('columns', () => {
  test('stand beside each other and wrap at words', () => {
    const rows = sideBySide(
      { title: 'before', lines: ['a long line that wraps here'] },
      { title: 'after', lines: ['ok'] },
      43,
    )
    expect(rows).toEqual([
      'before               │ after',
      '──────────────────── │ ────────────────────',
      'a long line that     │ ok',
      'wraps here           │',
    ])
  })

  test('a word longer than the column is broken between characters', () => {
    expect(wrap('😀😀😀', 2)).toEqual(['😀😀', '😀'])
  })
})
