import { expect, test } from 'vitest'

import { checkContract } from '../src/contract.ts'
import { ConfigError, MAX_ERROR_CHARS, summarizeError, TiltyardError } from '../src/errors.ts'

test('errors of another copy of core are recognised', () => {
  const foreign = Object.assign(new Error('x'), {
    code: 'DATA',
    [Symbol.for('tiltyard.error')]: true,
  })
  expect(TiltyardError.is(foreign)).toBe(true)
  expect(TiltyardError.is(foreign, 'DATA')).toBe(true)
  expect(TiltyardError.is(foreign, 'STATE')).toBe(false)
  expect(TiltyardError.is(new Error('x'))).toBe(false)
})

test('a config error lists every mistake with its place', () => {
  const error = new ConfigError('bundle desk', [
    { at: 'tasks.jsonl:3', message: 'duplicate id "17"' },
    { at: 'bundle.json', message: 'no tools' },
  ])
  expect(error.message).toBe(
    'bundle desk: \n  tasks.jsonl:3: duplicate id "17"\n  bundle.json: no tools',
  )
  expect(error.name).toBe('ConfigError')
})

test('a summary keeps name and code and limits the message', () => {
  const summary = summarizeError(new TiltyardError('DATA', 'x'.repeat(MAX_ERROR_CHARS + 1)))
  expect(summary).toMatchObject({ name: 'TiltyardError', code: 'DATA' })
  expect(summary.message).toHaveLength(MAX_ERROR_CHARS + '… (2001 characters)'.length)
  expect(summarizeError('plain')).toEqual({ name: 'string', message: 'plain' })
})

test('a contract of another version is refused by name', () => {
  expect(() => checkContract('renderer', 'renderer/1', { specVersion: 'renderer/2' })).toThrow(
    'expected an object with specVersion "renderer/1", got "renderer/2"',
  )
  expect(() => checkContract('renderer', 'renderer/1', {})).toThrow('an object without specVersion')
  expect(() => checkContract('renderer', 'renderer/1', { specVersion: 'renderer/1' })).not.toThrow()
})
