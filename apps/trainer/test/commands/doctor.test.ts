import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { run } from '../support/terminal.ts'

const vectors = fileURLToPath(
  new URL('../../../../packages/renderer-qwen/test/vectors/parse.json', import.meta.url),
)

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-doctor-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('doctor renderer', () => {
  test('our renderer passes its vectors; the last line counts', async () => {
    const { code, stdout, stderr } = await run(['doctor', 'renderer', '--vectors', vectors])
    expect(stderr).toBe('')
    expect(stdout.trim().split('\n').at(-1)).toBe('87 passed, 0 failed')
    expect(code).toBe(0)
  })

  test('a case that differs is shown, and the exit code is 1', async () => {
    const broken = join(folder, 'broken.json')
    const cases = JSON.parse(readFileSync(vectors, 'utf8')) as { expected: { content: string } }[]
    cases[0]!.expected.content = 'something else'
    writeFileSync(broken, JSON.stringify(cases))
    const { code, stdout } = await run(['doctor', 'renderer', '--vectors', broken])
    expect(stdout).toContain('something else')
    expect(stdout.trim().split('\n').at(-1)).toBe('86 passed, 1 failed')
    expect(code).toBe(1)
  })

  test.each([
    ['is no JSON', 'it is no JSON'],
    ['[{"name": 1}]', 'vectors.json'],
  ])('a bad file is named, with exit code 2: %s', async (text, message) => {
    const bad = join(folder, 'vectors.json')
    writeFileSync(bad, text)
    const { code, stderr } = await run(['doctor', 'renderer', '--vectors', bad])
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  })

  test('a renderer of one’s own comes from a module', async () => {
    const module = join(folder, 'mine.mjs')
    writeFileSync(module, 'export const make = () => { throw new Error("not yet") }\n')
    const { code, stdout } = await run([
      'doctor',
      'renderer',
      '--vectors',
      vectors,
      '--renderer',
      `${module}#make`,
    ])
    expect(stdout).toContain('not yet')
    expect(stdout.trim().split('\n').at(-1)).toBe('0 passed, 87 failed')
    expect(code).toBe(1)
  })
})
