import { mkdir, mkdtemp, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { recordRuns } from '../support/recorded-runs.ts'
import { run } from '../support/terminal.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-damaged-'))
  await recordRuns(folder, ['cut', 'lost', 'replaced', 'whole'])
  const claim = (name: string) => join(folder, name, 'claims', '0001.json')
  await truncate(claim('cut'), 40)
  await rm(claim('lost'))
  await rm(claim('replaced'))
  await mkdir(claim('replaced'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('F68: damaged runs are listed with what is wrong, and hide none that is whole', async () => {
  const { code, stdout } = await run(['index', 'ls', '--index', folder])
  const lines = stdout.trimEnd().split('\n')
  expect(lines.map((line) => line.split(' ')[0])).toEqual(['cut', 'lost', 'replaced', 'whole'])
  expect(lines[0]).toContain('cut/claims/0001.json: unreadable claim')
  expect(lines[1]).toContain('lost/claims: no claim is there')
  expect(lines[2]).toContain('replaced/claims: no claim is there')
  expect(lines[3]).toMatch(/completed +2 steps/)
  expect(code).toBe(0)
  const { stdout: shown } = await run(['index', 'metrics', 'whole', '--index', folder])
  expect(shown).toContain('0.5')
})
