import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { run } from '../support/terminal.ts'

let folder: string
const file = (name: string, text: string) => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-cli-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('a mistake is told in one line that says what to do, with exit code 2', () => {
  test('a recipe that is not there', async () => {
    const { code, stderr, stdout } = await run(['train', join(folder, 'no.ts')])
    expect(stderr).toContain('no.ts: no such file')
    expect([code, stdout]).toEqual([2, ''])
  })

  test('a port that is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const { code, stderr } = await run(['explore', folder, '--port', String(port)])
    taken.close()
    expect(stderr).toBe(
      `port ${port} is in use; name another with --port, or leave it out for any that is free\n`,
    )
    expect(code).toBe(2)
  })

  test('a recipe that throws', async () => {
    const recipe = file('throws.ts', "throw new Error('no such dataset')\nexport {}\n")
    const { code, stderr } = await run(['train', recipe])
    expect(stderr).toContain('it threw while it was loaded: no such dataset')
    expect(code).toBe(2)
  })

  test('a recipe that imports an adapter which is not installed', async () => {
    const recipe = file(
      'missing.ts',
      "import { x } from '@tiltyard/renderer-llama'\nexport const y = x\n",
    )
    const { code, stderr } = await run(['train', recipe])
    expect(stderr).toContain('try: npm install @tiltyard/renderer-llama')
    expect(code).toBe(2)
  })

  test('a recipe that exports no training, or not the one that was named', async () => {
    const recipe = file('empty.ts', 'export const trainings = 3\n')
    expect((await run(['train', recipe])).stderr).toContain('it should export one training')
    const { stderr } = await run(['train', recipe, '--export', 'training'])
    expect(stderr).toContain(
      'its export "training" is no training (what defineTraining returns); did you mean "trainings"?',
    )
  })

  test.each([
    [['train', 'x.ts', '--stepz', '3'], "unknown option '--stepz'", '--steps'],
    [['trian', 'x.ts'], "unknown command 'trian'", 'train'],
    [['train', 'x.ts', '--steps', 'many'], 'expected a whole number of at least 1, got "many"', ''],
    [['train'], "missing required argument 'recipe'", ''],
  ])('F74: %j', async (args, message, near) => {
    const { code, stderr } = await run(args)
    expect(stderr).toContain(message)
    expect(stderr).toContain(near)
    expect(code).toBe(2)
  })
})

test('help is no mistake', async () => {
  const { code, stdout, stderr } = await run(['--help'])
  expect(stdout).toContain('Trains LLM agents by reinforcement learning.')
  expect([code, stderr]).toEqual([0, ''])
})

describe('looking at runs', () => {
  test('a folder without runs says so, and is an empty list for programs', async () => {
    expect((await run(['index', 'ls', '--index', folder])).stdout).toContain('no runs in')
    expect((await run(['index', 'ls', '--index', folder, '--json'])).stdout).toBe('[]\n')
  })

  test('a run that is not there is named, with exit code 1', async () => {
    const { code, stderr } = await run(['index', 'metrics', 'nothing', '--index', folder])
    expect(stderr).toContain('nothing')
    expect(code).toBe(1)
  })
})
