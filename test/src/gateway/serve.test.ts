import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { run, runOk } from '../../support/run.ts'
import { shareOfVowels } from './singing.ts'

/** For programs that take seconds where nothing else runs. */
const PATIENCE_MS = 600_000
const program = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))
const recipe = fileURLToPath(new URL('serve-recipe.ts', import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-serve-'))
  await runOk(process.execPath, [program, 'train', recipe], {
    cwd: folder,
    timeout: PATIENCE_MS,
  })
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** Serves until `use` is done, then presses Ctrl-C. */
async function served(args: readonly string[], use: (baseURL: string) => Promise<void>) {
  const child = spawn(process.execPath, [program, 'serve', 'gateway', recipe, ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const lines: string[] = []
  try {
    for await (const line of createInterface(child.stdout)) {
      lines.push(line)
      if (line === 'Ctrl-C ends it') break
    }
    const baseURL = /serving at (\S+)/.exec(lines.join('\n'))?.[1]
    if (baseURL === undefined) throw new Error(`it does not serve: ${lines.join('\n')}`)
    await use(baseURL)
  } finally {
    child.kill('SIGINT')
  }
  return { code: (await closed)[0] as number, lines }
}

test('two versions of a run and the model are served beside each other, and the later sings better', async () => {
  const { code, lines } = await served(
    ['--step', '12', '--beside', '6', '--beside', 'model', '--beside', 'singing:12'],
    async (baseURL) => {
      const client = new OpenAI({ baseURL, apiKey: 'none' })
      const { data } = await client.models.list()
      const names = data.map(({ id }) => id)
      expect(names).toEqual(['policy', 'step-6', 'model', 'singing-step-12'])
      const sung = new Map<string, number>()
      for (const model of names) {
        const reply = await client.chat.completions.create({
          model,
          messages: [{ role: 'user', content: 'sing' }],
          max_tokens: 8,
          n: 8,
          seed: 1,
        })
        const shares = reply.choices.map(({ message }) => shareOfVowels(message.content ?? ''))
        sung.set(model, shares.reduce((sum, share) => sum + share, 0) / shares.length)
      }
      expect(sung.get('singing-step-12')).toBe(sung.get('policy'))
      expect(sung.get('policy')).toBeGreaterThan(sung.get('model')! + 0.3)
      const slip = client.chat.completions.create({
        model: 'step-7',
        messages: [{ role: 'user', content: 'sing' }],
      })
      await expect(slip).rejects.toThrow(/no model "step-7"; there is policy, step-6/)
      const page = await fetch(new URL('/', baseURL))
      expect(await page.text()).toContain('Talk to a policy')
    },
  )
  expect(lines.slice(0, 4)).toEqual([
    expect.stringMatching(/^policy: checkpoint \S+ of singing$/),
    expect.stringMatching(/^step-6: checkpoint \S+ of singing$/),
    'model: tiny as it is',
    expect.stringMatching(/^singing-step-12: checkpoint \S+ of singing$/),
  ])
  expect(code).toBe(0)
})

test('a version that is not there is told with those that are, and one named twice is refused, as are two keys', async () => {
  const serve = (...args: string[]) =>
    run(process.execPath, [program, 'serve', 'gateway', recipe, ...args], {
      cwd: folder,
      timeout: PATIENCE_MS,
    })
  const missing = await serve('--beside', '7')
  expect(missing.code).toBe(1)
  expect(missing.stderr).toContain(
    'singing has no checkpoint to sample from after 7 steps; there is 6, 12',
  )
  const twice = await serve('--beside', 'model', '--beside', 'model')
  expect(twice.code).toBe(2)
  expect(twice.stderr).toContain('--beside: "model" is served already')
  const keys = await serve('--key', 'first-of-two-keys', 'second-of-two-keys')
  expect(keys.code).toBe(2)
  expect(keys.stderr).toContain('--key: the gateway lets in one key')
})
