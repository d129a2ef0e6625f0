import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { run } from '../../support/run.ts'
import { root } from '../../support/workspace.ts'

// What npx runs in a checkout.
const tiltyard = join(root, 'node_modules', '.bin', 'tiltyard')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-npx-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

test('tiltyard is there for npx in a checkout: a bundle of one’s own, and the explorer', async () => {
  const bundle = join(folder, 'my-bundle')
  const made = await run(tiltyard, ['bundle', 'new', bundle], { cwd: root })
  expect(made.stderr).toBe('')
  expect(made.code).toBe(0)
  expect((await run(tiltyard, ['bundle', 'check', bundle], { cwd: root })).code).toBe(0)

  const explorer = spawn(tiltyard, ['explore', join(folder, 'runs')], { cwd: root })
  try {
    const [line] = (await once(createInterface({ input: explorer.stdout }), 'line')) as [string]
    const url = /look at it at (http:\S+)/.exec(line)?.[1]
    expect((await fetch(url!)).status).toBe(200)
  } finally {
    explorer.kill('SIGINT')
    await once(explorer, 'exit')
  }
  expect(explorer.exitCode).toBe(0)
})
