import type { Backend } from '@tiltyard/core'
import { bigramBackend, simulatedClock } from '@tiltyard/testkit'
import { unpackTar } from 'modern-tar'
import { expect, test } from 'vitest'

import { peer, type Peer } from './peer.ts'

const KEY = 'tml-let-me-in'
const keyed = { 'x-api-key': KEY }

/** A server that wants a key, as a peer that has it; and a saved checkpoint. */
async function saved(backend?: Backend, clock = simulatedClock(), advertise?: string) {
  const advertised = advertise === undefined ? {} : { advertise }
  const outside = peer({ keys: [KEY], clock, ...advertised }, backend)
  const call: Peer['call'] = (path, body, options) =>
    outside.call(path, body, { ...options, headers: keyed })
  const session = (await call('/create_session', {})).json['session_id']
  const model = `${String(session)}:train:0`
  const lora = { rank: 4, seed: 1 }
  await call('/create_model', {
    session_id: session,
    model_seq_id: 0,
    base_model: 'bigram',
    lora_config: lora,
  })
  const { json } = await call('/save_weights', { model_id: model, seq_id: 1, path: 'one' })
  await call('/retrieve_future', { request_id: json['request_id'] })
  return { outside, call, clock, at: `/training_runs/${model}/checkpoints/weights/one/archive` }
}

const placeOf = (headers: Headers) => headers.get('location')!.replace(/^.*\/api\/v1/, '')

test('#58 the archive of a checkpoint is fetched without a key, from an address that can’t be guessed', async () => {
  const backend = bigramBackend()
  const { outside, call, at } = await saved(backend)
  expect((await outside.call(at)).status).toBe(401)
  const offered = await call(at)
  expect(offered.status).toBe(302)
  const { headers } = offered
  expect(headers.get('location')).toMatch(
    /^http:\/\/server\.test\/api\/v1\/archives\/[\da-f-]{36}$/,
  )
  expect(Date.parse(headers.get('expires')!)).toBeGreaterThan(Date.now())
  const place = placeOf(headers)
  const fetched = await outside.call(place)
  expect(fetched.status).toBe(200)
  expect(fetched.headers.get('content-type')).toBe('application/x-tar')
  expect(Number(fetched.headers.get('content-length'))).toBe(fetched.bytes.length)
  const entries = await unpackTar(fetched.bytes, { strict: true })
  expect(entries.map(({ header }) => [header.name, header.size])).toEqual([
    ['table.f64', 64 * 64 * 8],
    ['checkpoint_complete', 0],
  ])
  const [ref] = await backend.checkpoints().list()
  const [file] = await backend.checkpoints().files!(ref!)
  const pieces: Uint8Array[] = []
  for await (const piece of file!.read()) pieces.push(piece)
  expect(Buffer.concat(pieces).equals(entries[0]!.data!)).toBe(true)
  // Twice, also from two sides at once.
  expect((await outside.call(place)).bytes).toEqual(fetched.bytes)
  expect(JSON.stringify(outside.log)).not.toContain(place.split('/').at(-1))
})

test('an address is over after a quarter of an hour, and when its checkpoint is gone', async () => {
  const { outside, call, clock, at } = await saved()
  const [first, second] = [placeOf((await call(at)).headers), placeOf((await call(at)).headers)]
  expect(first).not.toBe(second)
  await clock.drive(clock.sleep(14 * 60_000))
  expect((await outside.call(first)).status).toBe(200)
  await clock.drive(clock.sleep(60_000))
  expect((await outside.call(first)).status).toBe(404)
  const third = placeOf((await call(at)).headers)
  await call(at.replace('/archive', ''), undefined, { method: 'DELETE' })
  expect((await outside.call(third)).status).toBe(404)
  expect((await call(at)).status).toBe(404)
  expect((await outside.call('/archives/00000000-0000-0000-0000-000000000000')).status).toBe(404)
})

test('a backend that can’t give files is told by name, at once', async () => {
  const inner = bigramBackend()
  const without: Backend = {
    ...inner,
    checkpoints() {
      const store = inner.checkpoints()
      return {
        list: () => store.list(),
        exists: (ref) => store.exists(ref),
        delete: (ref) => store.delete(ref),
      }
    },
  }
  const { call, at } = await saved(without)
  const { status, json } = await call(at)
  expect(status).toBe(400)
  expect(json['detail']).toContain('"bigram" doesn’t give the files')
})

test('a file that can’t be read any more breaks the download off', async () => {
  const inner = bigramBackend()
  const failing: Backend = {
    ...inner,
    checkpoints: () => ({
      ...inner.checkpoints(),
      files: async () => [
        {
          name: 'half',
          bytes: 1_000,
          async *read() {
            yield new Uint8Array(500)
            throw new Error('the disk is gone')
          },
        },
      ],
    }),
  }
  const { outside, call, at } = await saved(failing)
  const place = placeOf((await call(at)).headers)
  await expect(outside.call(place)).rejects.toThrow('the disk is gone')
})

test('behind a proxy that ends TLS, archives are where clients reach the server', async () => {
  const { outside, call, at } = await saved(
    bigramBackend(),
    simulatedClock(),
    'https://rl.example/tinker/',
  )
  const { headers } = await call(at)
  expect(headers.get('location')).toMatch(
    /^https:\/\/rl\.example\/tinker\/api\/v1\/archives\/[\da-f-]{36}$/,
  )
  expect((await outside.call(placeOf(headers))).status).toBe(200)
})

test.each([
  'rl.example',
  'ftp://rl.example',
  'https://me:secret@rl.example',
  'https://rl.example?a',
])('the advertised address "%s" is refused', (advertise) => {
  expect(() => peer({ advertise })).toThrow(/advertise/)
})
