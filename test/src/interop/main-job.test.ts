import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { deskTokenizerFile } from '@tiltyard/tokenizer'
import { afterAll, beforeAll, expect, test } from 'vitest'

const program = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))
const recipe = fileURLToPath(new URL('main-job-recipe.ts', import.meta.url))
const tokenizer = fileURLToPath(deskTokenizerFile)
const MINUTES = 60_000

let folder: string
let server: ChildProcess
let address: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-wired-'))
  const key = 'tml-of-the-test'
  server = await start(
    'service',
    ['serve', 'tinker', recipe, ['--key', key], ['--ledger', 'ledger']].flat(),
  )
  // Read to its end: a pipe that nobody holds any more would end the service.
  let said = ''
  address = await new Promise((resolve, reject) => {
    server.stdout!.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, found] = /serving the Tinker protocol at (\S+)/.exec(said) ?? []
      if (found !== undefined) resolve(found)
    })
    server.once('close', () => reject(new Error(`the service didn't begin: ${said}`)))
  })
}, 10 * MINUTES)
afterAll(() => {
  server?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Begins the program in a folder of its own. */
async function start(name: string, args: readonly string[], env: Record<string, string> = {}) {
  const cwd = join(folder, name)
  await mkdir(cwd, { recursive: true })
  return spawn(process.execPath, [program, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function finished(child: ChildProcess) {
  let stderr = ''
  let stdout = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}

const metricsOf = (name: string, run: string) =>
  readFileSync(join(folder, name, 'runs', run, 'metrics.jsonl'), 'utf8')

test(
  'the main job over `tiltyard serve tinker` gives the metrics of the same job in process, byte for byte',
  async () => {
    const inside = await finished(await start('inside', ['train', recipe]))
    expect(inside.stderr).toBe('')
    expect(inside.code).toBe(0)
    const over = await finished(
      await start('over', ['train', recipe], {
        SERVICE: address,
      }),
    )
    expect(over.stderr).toBe('')
    expect(over.code).toBe(0)
    expect(over.stdout).toContain('tinker service at')
    const wanted = metricsOf('inside', 'wired')
    expect(wanted.trim().split('\n').length).toBeGreaterThanOrEqual(3)
    expect(metricsOf('over', 'wired')).toBe(wanted)
    expect(metricsOf('over', 'wired-warm-start')).toBe(metricsOf('inside', 'wired-warm-start'))
    // What the service knows of the run's checkpoints outlives it.
    expect(readdirSync(join(folder, 'service', 'ledger')).length).toBeGreaterThan(0)
  },
  20 * MINUTES,
)

test(
  'doctor finds no broken promise in what `tiltyard serve tinker` serves',
  async () => {
    const { code, stdout, stderr } = await finished(
      await start(
        'doctor',
        ['doctor', 'backend', address, '--yes', '--at-once', '2', '--tokenizer', tokenizer],
        { TINKER_API_KEY: 'tml-of-the-test' },
      ),
    )
    expect(stderr).toBe('')
    expect(stdout).not.toContain('✗')
    expect(stdout).toMatch(/^\d\d passed, 0 failed, 1 left out$/m)
    expect(stdout).not.toContain('tml-of-the-test')
    expect(code).toBe(0)
  },
  20 * MINUTES,
)
