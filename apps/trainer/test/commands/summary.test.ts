import { fsRunIndex } from '@tiltyard/run-index-fs'
import { describe, expect, test } from 'vitest'

import { nextCommands } from '../../src/commands/summary.ts'

const about = { recipe: 'mine.ts', run: 'lib', flags: {}, end: 'completed' as const }
const named = (folder: string) => fsRunIndex({ folder }).name

describe('what to type after a run', () => {
  test('in the usual place, no place is named', () => {
    expect(nextCommands({ ...about, index: named('runs') })).toEqual([
      'its numbers:     npx tiltyard index metrics lib',
      'its episodes:    npx tiltyard index show lib',
      'in a browser:    npx tiltyard explore',
      'evaluate it:     npx tiltyard eval mine.ts --run lib',
    ])
  })

  test('a recipe that records elsewhere: what knows no recipe is told where', () => {
    expect(nextCommands({ ...about, index: named('my runs') })).toEqual([
      "its numbers:     npx tiltyard index metrics lib --index 'my runs'",
      "its episodes:    npx tiltyard index show lib --index 'my runs'",
      "in a browser:    npx tiltyard explore 'my runs'",
      'evaluate it:     npx tiltyard eval mine.ts --run lib',
    ])
    expect(nextCommands({ ...about, index: 's3://bucket/prefix' })[0]).toMatch(
      / --index s3:\/\/bucket\/prefix$/,
    )
    expect(nextCommands({ ...about, index: 'an index of one’s own' })[0]).toMatch(/metrics lib$/)
  })

  test('an interrupted run goes on with what was typed at its start', () => {
    const flags = { steps: 3, seed: 7, index: 'elsewhere', export: 'small' }
    const lines = nextCommands({ ...about, flags, index: named('elsewhere'), end: 'interrupted' })
    expect(lines).toEqual([
      'go on:           npx tiltyard train mine.ts --resume --run lib --steps 3 --seed 7 --index elsewhere --export small',
      'its numbers:     npx tiltyard index metrics lib --index elsewhere',
      'its episodes:    npx tiltyard index show lib --index elsewhere',
      'in a browser:    npx tiltyard explore elsewhere',
      'evaluate it:     npx tiltyard eval mine.ts --run lib --index elsewhere --export small',
    ])
  })
})
