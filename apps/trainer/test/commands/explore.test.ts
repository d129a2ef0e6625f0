import { describe, expect, test } from 'vitest'

import { exitCodes } from '../../src/exit.ts'
import { run } from '../support/terminal.ts'

describe('explore', () => {
  test.each([
    [['--tokenizer', 'none.json'], 'none.json: cannot be read'],
    [['gs://bucket'], 'gs://…: expected'],
    [['--port', 'eighty'], 'expected a whole number'],
  ])('%j is a mistake, named before anything is served', async (args, message) => {
    const { code, stdout, stderr } = await run(['explore', ...args])
    expect(stderr).toContain(message)
    expect([code, stdout]).toEqual([exitCodes.usage, ''])
  })
})
