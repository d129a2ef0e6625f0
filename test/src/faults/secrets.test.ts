/** F64: whatever call of a service fails, with whatever words, its key is in nothing that a run tells or keeps. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import { bigramBackend } from '@tiltyard/testkit'
import { tinkerServer, type TinkerServer } from '@tiltyard/tinker-server'
import { defineTraining, train } from '@tiltyard/train'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { textBelow } from '../../support/files.ts'
import { smallTraining } from './world.ts'

const KEY = 'tml-SENTINEL-of-the-account'

let folder: string
let server: TinkerServer
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-key-'))
  server = tinkerServer({ backend: bigramBackend() })
})
afterEach(async () => {
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

/** The server, but for one kind of call: what answers it says the key in each place where an answer has words. */
function careless(path: string, answer: () => Response) {
  let failed = 0
  const send: typeof fetch = async (url, init) => {
    const request = new Request(url, init)
    if (!new URL(request.url).pathname.endsWith(path)) return server.fetch(request)
    failed += 1
    return answer()
  }
  return { send, failed: () => failed }
}

const refused = () =>
  Response.json(
    { detail: `no rights for ${KEY}` },
    { status: 403, headers: { 'x-request-id': KEY } },
  )
const down = () => new Response(`<html>${KEY}</html>`, { status: 502 })
/** What was asked for failed after it was taken. */
const failedLater = () => Response.json({ error: `no rights for ${KEY}`, category: 'user' })
const pausedThenFailed = () => {
  const pause = { queue_state: 'paused_capacity', queue_state_reason: `too many of ${KEY}` }
  let asked = 0
  return () => ((asked += 1) === 1 ? Response.json({ type: 'try_again', ...pause }) : failedLater())
}
const warned = () => Response.json({ session_id: 'none', warning_message: `welcome ${KEY}` })
const gone = (): never => {
  throw new TypeError('fetch failed', { cause: new Error(`proxy ${KEY}@host`) })
}

test.each([
  ['/create_session', warned],
  ['/create_model', refused],
  ['/save_weights_for_sampler', refused],
  ['/asample', refused],
  ['/asample', down],
  ['/asample', gone],
  ['/retrieve_future', refused],
  ['/retrieve_future', failedLater],
  ['/retrieve_future', pausedThenFailed()],
  ['/forward_backward', refused],
  ['/forward_backward', gone],
  ['/optim_step', down],
  ['/save_weights', refused],
])('%s fails: %#', async (path, answer) => {
  const heard: unknown[] = []
  const hear = (...said: readonly unknown[]) => void heard.push(said)
  const logger = { debug: hear, info: hear, warn: hear, error: hear }
  const { send, failed } = careless(path, answer)
  const backend = tinkerBackend({
    baseUrl: 'http://tinker.test',
    apiKey: KEY,
    fetch: send,
    logger,
    deadlines: { retries: 0 },
  })
  const { warmStart: _, evaluations: __, ...config } = smallTraining(folder).config
  await config.backend.close()
  const training = defineTraining({ ...config, backend, model: 'bigram', adaptation: { rank: 4 } })
  const run = train(training, { logger, observer: hear })
  const [outcome] = await Promise.allSettled([run.finish()])
  await config.index.close()
  await backend.close().catch(hear)

  expect(failed()).toBeGreaterThan(0)
  const told = inspect([heard, outcome], {
    depth: 20,
    showHidden: true,
    maxStringLength: null,
    maxArrayLength: null,
  })
  expect(told).not.toContain('SENTINEL')
  expect(await textBelow(folder)).not.toContain('SENTINEL')
})
