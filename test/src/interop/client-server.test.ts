import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import { tinkerBackend, tinkerClient } from '@tiltyard/backend-tinker'
import { tokenPrompt, type Backend } from '@tiltyard/core'
import { backendCases, bigramBackend, bigramText, registerCases } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'
import { describe, expect, test } from 'vitest'

async function served(
  options: { readonly path?: string; readonly holdMs?: number; readonly inner?: Backend } = {},
) {
  const { inner = bigramBackend() } = options
  const server = tinkerServer({
    backend: inner,
    keys: ['tml-let-me-in'],
    ...(options.holdMs !== undefined && { limits: { holdMs: options.holdMs } }),
  })
  const url = await server.listen()
  const backend = tinkerBackend({ baseUrl: url + (options.path ?? ''), apiKey: 'tml-let-me-in' })
  return {
    ...backend,
    url,
    async close() {
      await backend.close()
      await server.close()
      await inner.close()
    },
  }
}

/** The bigram backend, whose samplers give nothing until they may. */
function heldBackend() {
  const inner = bigramBackend()
  let waiting = 0
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const backend: Backend = {
    ...inner,
    async sampler(of) {
      const sampler = await inner.sampler(of)
      return {
        ...sampler,
        async sample(request, options) {
          waiting += 1
          await released
          return sampler.sample(request, options)
        },
      }
    },
  }
  return {
    backend,
    release,
    get waiting() {
      return waiting
    },
  }
}

/** Counts what undici opens to an address. Nothing here closes one before it is told to. */
function connectionsTo(url: string) {
  const { host } = new URL(url)
  let count = 0
  const listener = (message: unknown) => {
    const { connectParams } = message as { readonly connectParams: { readonly host: string } }
    if (connectParams.host === host) count += 1
  }
  subscribe('undici:client:connected', listener)
  return {
    stop: () => unsubscribe('undici:client:connected', listener),
    get count() {
      return count
    },
  }
}

async function joined(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

// #69: our client against our server, over sockets: all that the contracts promise survives the wire.
describe('our client against our server keeps every promise of a backend', () => {
  registerCases(
    test,
    backendCases({
      create: () => served({ path: '/behind/a/prefix' }),
      model: 'bigram',
      decode: bigramText,
      lacks: { mask: 'the wire has no mask' },
    }),
  )
})

describe('our client against our server', () => {
  test('what the backend behind it can is told through the wire', async () => {
    const backend = await served()
    const { mask, ...described } = await backend.describe()
    const { mask: inner, executor, ...wanted } = await bigramBackend().describe()
    expect([mask, inner]).toEqual([false, true])
    expect(described).toEqual({
      ...wanted,
      executor: `tinker service at ${new URL(backend.url).host} (${executor})`,
    })
    await backend.close()
  })

  test('a whole model is trained under the name that ends in :full', async () => {
    const backend = await served()
    const learner = await backend.learner({ model: 'bigram', adaptation: 'full' })
    const from = await learner.save('whole')
    const again = await backend.learner({ model: 'bigram', adaptation: 'full', from })
    expect(again.steps).toBe(0)
    await backend.close()
  })

  test('#58 a checkpoint is downloaded file by file', async () => {
    const inner = bigramBackend()
    const server = tinkerServer({ backend: inner, keys: ['tml-let-me-in'] })
    const baseUrl = `${await server.listen()}/behind/a/prefix`
    const client = tinkerClient({ baseUrl, apiKey: 'tml-let-me-in' })
    const model = await client.createModel({ baseModel: 'bigram', rank: 4 })
    const path = await model.saveWeights('taken')
    const [ref] = await inner.checkpoints().list()
    const [file] = await inner.checkpoints().files!(ref!)
    const names: string[] = []
    for await (const { name, bytes, content } of client.rest.files(path)) {
      names.push(name)
      const [there, here] = [await joined(content), await joined(file!.read())]
      expect(there.length).toBe(bytes)
      expect(there.equals(here)).toBe(true)
    }
    expect(names).toEqual([file!.name])
    const none = client.rest.files(`${path}-not`)[Symbol.asyncIterator]()
    await expect(none.next()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await client.close()
    await server.close()
  })

  test('a wrong key says so', async () => {
    const backend = await served()
    const stranger = tinkerBackend({ baseUrl: backend.url, apiKey: 'tml-wrong-key' })
    await expect(stranger.describe()).rejects.toMatchObject({ code: 'TINKER_KEY', status: 401 })
    await stranger.close()
    await backend.close()
  })

  test('#66 two thousand samples wait at the same time, each on a connection of its own', async () => {
    const count = 2_000
    const held = heldBackend()
    const backend = await served({ holdMs: 40_000, inner: held.backend })
    const connected = connectionsTo(backend.url)
    const sampler = await backend.sampler({ model: 'bigram' })
    const samples = Array.from({ length: count }, (_, index) =>
      sampler.sample({ prompt: tokenPrompt([index % 64]), maxTokens: 20, seeds: [index] }),
    )
    await expect.poll(() => held.waiting, { timeout: 300_000 }).toBe(count)
    await expect.poll(() => connected.count, { timeout: 300_000 }).toBeGreaterThanOrEqual(count)
    held.release()
    const lengths = (await Promise.all(samples)).map(([sample]) => sample!.ids.length)
    expect(lengths).toEqual(Array.from({ length: count }, () => 20))
    connected.stop()
    await backend.close()
  })
})
