import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const program = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))
const recipe = fileURLToPath(new URL('ending-recipe.ts', import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-ending-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Starts the training. The recipe's server and timer would keep its process alive for ever. */
function start(ending: string) {
  const child = spawn(process.execPath, [program, 'train', recipe], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', ENDING: ending },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number, stdout, stderr }))
  return {
    child,
    ended,
    /** Waits for a text in what it says; an early end is an error. */
    said: async (text: string) => {
      const isSaid = async () => {
        while (!stdout.includes(text)) await once(child.stdout, 'data')
      }
      const early = async () => {
        const { code } = await ended
        throw new Error(`it ended with ${code}: ${stderr}`)
      }
      await Promise.race([isSaid(), early()])
    },
  }
}

const helpersBegun = () =>
  readdirSync(folder).flatMap((name) => (name.startsWith('helper-') ? [Number(name.slice(7))] : []))

/** A process that has ended has no command line any more, or is not there. */
function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
  } catch {
    return false
  }
}

describe('a process that something would keep alive', () => {
  test.each([
    ['completes', 0, ''],
    ['fails', 1, 'the file is gone'],
  ])('F75: ends when the training %s, with exit code %d', async (ending, code, complaint) => {
    const ended = await start(ending).ended
    expect(ended).toMatchObject({ code, stderr: expect.stringContaining(complaint) as string })
  })
})

describe('a signal', () => {
  test.each(['SIGTERM', 'SIGHUP'] as const)(
    'F42, F75: %s drops the step that plays, ends its helpers, tells how to go on, and the exit code is 130',
    async (signal) => {
      const { child, ended } = start('plays helpers')
      await expect.poll(helpersBegun, { timeout: 300_000 }).toHaveLength(2)
      child.kill(signal)
      const { code, stdout, stderr } = await ended
      expect(stderr).toBe('')
      expect(stdout).toContain('stopping: the step under way is finished or dropped')
      expect(stdout).toContain('--resume')
      expect(code).toBe(130)
      await expect.poll(() => helpersBegun().filter(isAlive)).toEqual([])
    },
  )

  test('F42: one is enough while nothing has begun, though the service is away', async () => {
    const { child, ended, said } = start('waits for a service')
    await said('trying again to')
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([130, ''])
  })

  test('F42: the second is out at once, whatever the step waits for; helpers are ended all the same', async () => {
    const { child, ended, said } = start('evaluates helpers')
    await expect.poll(helpersBegun, { timeout: 300_000 }).toHaveLength(2)
    child.kill('SIGINT')
    await said('stopping: the step under way')
    // Two within 300 ms are one press: npm passes a terminal's Ctrl-C on.
    await sleep(500)
    expect(child.exitCode).toBeNull()
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(stderr).toBe('')
    expect(code).toBe(130)
    await expect.poll(() => helpersBegun().filter(isAlive)).toEqual([])
  })
})
