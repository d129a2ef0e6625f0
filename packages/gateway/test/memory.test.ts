import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { expect, test } from 'vitest'

import { createGateway, type Gateway } from '../src/index.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { postTo, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Plays an attempt to its end; nothing but the gateway could hold it after. */
async function playOnce(gateway: Gateway, rollout: string): Promise<WeakRef<object>> {
  const policy = { sampler: byteSampler(['one', 'two']), renderer: byteRenderer(), sampling: {} }
  const attempt = gateway.open({ rollout, policy })
  const ask = async (body: object, init: RequestInit = {}) => {
    const url = `${gateway.baseURL(attempt)}/chat/completions`
    return (await postTo(gateway, url, attempt.key, body, init)).text()
  }
  await ask({ messages: [user('go')] })
  await ask({ messages: [user('go')], stream: true }, { signal: new AbortController().signal })
  await attempt.close()
  return new WeakRef(attempt)
}

test('§18.102 of ended attempts nothing is kept but a digest of the key', async () => {
  const gateway = createGateway()
  const attempts: WeakRef<object>[] = []
  for (let index = 0; index < 50; index += 1) attempts.push(await playOnce(gateway, `r${index}`))
  // What a turn of the event loop looked at lives to its end.
  await new Promise(setImmediate)
  collect()
  expect(attempts.filter((attempt) => attempt.deref() !== undefined)).toEqual([])
  expect(gateway.counts).toMatchObject({ open: 0, inFlight: 0 })
})
