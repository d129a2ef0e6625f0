import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { Backend, Learner, Logger } from '@tiltyard/core'
import { bigramBackend } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'
import { afterEach, describe, expect, test } from 'vitest'

import { run } from '../support/terminal.ts'

const KEY = 'tml-a-secret-of-mine'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A service; gives its address, and the calls that came. */
async function served(backend: Backend, keys: readonly string[] = []) {
  const calls: string[] = []
  const logger: Logger = {
    debug: (_, fields) => void calls.push(String(fields?.['path'])),
    info() {},
    warn() {},
    error() {},
  }
  const server = tinkerServer({ backend, keys, logger })
  closing.push(() => server.close())
  return { url: await server.listen(), calls }
}

/** A correct backend but for its forward, which learns. */
function trainingForward(): Backend {
  const backend = bigramBackend()
  return {
    ...backend,
    async learner(options) {
      const learner = await backend.learner(options)
      return Object.defineProperties({} as Learner, {
        ...Object.getOwnPropertyDescriptors(learner),
        forward: { value: learner.forwardBackward.bind(learner) },
      })
    },
  }
}

describe('doctor backend', () => {
  test('a service that keeps its promises: what it costs, then each promise, then what it did cost', async () => {
    const stored = bigramBackend()
    const { url } = await served(stored, [KEY])
    const { code, stdout, stderr } = await run(['doctor', 'backend', url, '--yes'], {
      env: { TINKER_API_KEY: KEY },
    })
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const [who, promises] = stdout.split('\n')
    expect(who).toMatch(/^tinker service at 127\.0\.0\.1:\d+ \(bigram table, 1 thread\): bigram, /)
    expect(promises).toMatch(/^\d\d promises to check, for at most$/)
    const [bound, used] = [...stdout.matchAll(/^ {2}trained tokens +([\d,]+)$/gm)].map(([, text]) =>
      Number(text!.replaceAll(',', '')),
    )
    expect(used).toBeGreaterThan(0)
    expect(used).toBeLessThanOrEqual(bound!)
    expect(stdout).toContain('✓ learner: forward changes nothing')
    expect(stdout).toContain('– sampler: a stop string ends the sample once its text is complete (')
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^\d\d passed, 0 failed, 2 left out$/)
    expect(stdout).not.toContain(KEY)
    expect(await stored.checkpoints().list()).toEqual([])
  })

  test('nothing that costs is sent before it may', async () => {
    const { url, calls } = await served(bigramBackend())
    const refused = await run(['doctor', 'backend', url])
    expect(refused.stdout).toContain('nothing was sent yet; add --yes to go on')
    expect(refused.code).toBe(2)
    const declined = await run(['doctor', 'backend', url], { input: 'n\n', tty: true })
    expect(declined.stdout).toContain('go on? [y/N]')
    expect(declined.code).toBe(2)
    expect(new Set(calls)).toEqual(
      new Set(['/client/config', '/client/dynamic_config', '/get_server_capabilities']),
    )
    const brief = ['--lacks', 'sum', 'adapterSeeds', 'optimizerState', 'list']
    const agreed = await run(['doctor', 'backend', url, ...brief], { input: 'y\n', tty: true })
    expect(agreed.stdout).toContain('✓')
    expect(agreed.code).toBe(0)
  })

  test('a service that breaks a promise: which, how, and exit code 1', async () => {
    const { url } = await served(trainingForward())
    const { code, stdout } = await run(['doctor', 'backend', url, '--yes', '--at-once', '1'])
    expect(stdout).toMatch(/^✗ learner: forward changes nothing\n {4}\S/m)
    expect(stdout).toContain('✓ learner: a learner says what it is, and has made no step')
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^\d\d passed, [1-9]\d? failed, 2 left out$/)
    expect(code).toBe(1)
  })

  test('what is declared with --lacks is left out; what nobody knows is a mistake', async () => {
    const { url } = await served(trainingForward())
    const known = await run(['doctor', 'backend', url, '--lacks', 'cross_entropy', 'sum'])
    expect(known.stdout).toContain('left out: declared with --lacks')
    const unknown = await run(['doctor', 'backend', url, '--lacks', 'clipnorm'])
    expect(unknown.stderr).toContain('did you mean "clipNorm"?')
    expect(unknown.code).toBe(2)
  })

  test.each([
    ['a model that it hasn’t', ['--model', 'bigrams'], 'did you mean "bigram"?', 2],
    ['a tokenizer that isn’t there', ['--tokenizer', 'none.json'], 'none.json', 2],
    ['a rank that is none', ['--rank', '0'], 'whole number', 2],
    ['a tolerance that is none', ['--tolerance', '-1'], 'above 0', 2],
  ])('%s is a mistake', async (_, flags, message, expected) => {
    const { url } = await served(bigramBackend())
    const { code, stderr } = await run(['doctor', 'backend', url, ...flags])
    expect(stderr).toContain(message)
    expect(code).toBe(expected)
  })

  test('a wrong key is told, never shown; a missing one is asked for', async () => {
    const { url } = await served(bigramBackend(), ['tml-the-right-one'])
    const wrong = await run(['doctor', 'backend', url, '--yes'], { env: { TINKER_API_KEY: KEY } })
    expect(wrong.stderr).toContain('the key is wrong')
    expect(wrong.stdout + wrong.stderr).not.toContain(KEY)
    expect(wrong.code).toBe(1)
    const missing = await run(['doctor', 'backend', 'https://tinker.invalid'])
    expect(missing.stderr).toContain('TINKER_API_KEY')
    expect(missing.code).toBe(2)
  })

  test.each([
    [200, '<html>welcome</html>', 'is the base address that of a Tinker service?'],
    [503, 'down', 'the service answered 503 (down)'],
  ])('what is no service, or is down, is told: %i', async (status, body, message) => {
    const stranger = createServer((_, response) => {
      response.writeHead(status, { 'content-length': body.length })
      response.end(body)
    })
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    closing.push(() => new Promise((resolve) => stranger.close(resolve)))
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`
    const { code, stderr } = await run(['doctor', 'backend', url, '--yes', '--timeout', '1'])
    expect(stderr).toContain(message)
    expect(code).toBe(1)
  })
})
