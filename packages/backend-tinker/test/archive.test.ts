import { simulatedClock } from '@tiltyard/testkit'
import { packTar } from 'modern-tar'
import { expect, test } from 'vitest'

import { tinkerClient, type TinkerOptions } from '../src/index.ts'
import { fakeService, json, type Answer } from './fake-service.ts'

const CHECKPOINT = 'tinker://s:train:0/weights/one'
const PLACE = 'https://bucket.test/archives/one?signature=of-the-service'
const at = '/training_runs/s:train:0/checkpoints/weights/one/archive'

const config = { header: { name: 'adapter_config.json', size: 2 }, body: '{}' }
const weights = new Uint8Array(3_000_000).map((_, index) => index % 251)
const adapters = {
  header: { name: 'adapter_model.safetensors', size: weights.length },
  body: weights,
}
const marker = { header: { name: 'checkpoint_complete', size: 0 } }

/** In small pieces, as it comes from a network. */
function arriving(bytes: Uint8Array<ArrayBuffer>): Response {
  const piece = 65_536
  let sent = 0
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (sent >= bytes.length) controller.close()
      else controller.enqueue(bytes.slice(sent, (sent += piece)))
    },
  })
  return new Response(body)
}

function clientOf(download: Answer, options: Partial<TinkerOptions> = {}) {
  const service = fakeService((asked) => {
    if (asked.path === at) return new Response(null, { status: 302, headers: { location: PLACE } })
    return asked.path.startsWith('https://bucket.test') ? download(asked) : undefined
  })
  const client = tinkerClient({
    baseUrl: 'http://service.test',
    apiKey: 'tml-key',
    fetch: service.fetch,
    ...options,
  })
  return { client, service }
}

async function read(client: ReturnType<typeof tinkerClient>) {
  const files: { readonly name: string; readonly bytes: number; readonly content: Buffer }[] = []
  for await (const { name, bytes, content } of client.rest.files(CHECKPOINT)) {
    const pieces: Uint8Array[] = []
    for await (const piece of content) pieces.push(piece)
    files.push({ name, bytes, content: Buffer.concat(pieces) })
  }
  return files
}

test('#58 the files of a checkpoint come out of its archive, which is fetched without the key', async () => {
  const tar = await packTar([config, adapters, marker])
  const { client, service } = clientOf(() => arriving(tar))
  const [first, second, ...more] = await read(client)
  expect(more).toEqual([])
  expect(first).toEqual({ name: 'adapter_config.json', bytes: 2, content: Buffer.from('{}') })
  expect(second!.name).toBe('adapter_model.safetensors')
  expect(second!.content.equals(weights)).toBe(true)
  const download = service.asked.at(-1)!
  expect(download.path).toBe(PLACE)
  expect([...download.headers.keys()]).toEqual([])
  await client.close()
})

test('what isn’t wanted is passed over', async () => {
  const tar = await packTar([adapters, config, marker])
  const { client } = clientOf(() => arriving(tar))
  const names: string[] = []
  for await (const { name } of client.rest.files(CHECKPOINT)) names.push(name)
  expect(names).toEqual(['adapter_model.safetensors', 'adapter_config.json'])
  for await (const { name } of client.rest.files(CHECKPOINT)) {
    expect(name).toBe('adapter_model.safetensors')
    break
  }
  await client.close()
})

test.each([
  [
    'cut',
    [config, adapters, marker],
    (tar: Uint8Array<ArrayBuffer>) => tar.slice(0, 1_000_000),
    'no whole tar',
  ],
  ['without its last file', [config], undefined, 'no file checkpoint_complete'],
  [
    'that reaches out of itself',
    [{ header: { name: '../../etc/x', size: 0 } }, marker],
    undefined,
    'outside',
  ],
  ['from the root', [{ header: { name: '/etc/x', size: 0 } }, marker], undefined, 'outside'],
])('an archive %s is refused', async (_, entries, change, words) => {
  const tar = await packTar(entries)
  const { client } = clientOf(() => arriving(change?.(tar) ?? tar))
  await expect(read(client)).rejects.toMatchObject({
    code: 'TINKER_FAILED',
    message: expect.stringContaining(words) as string,
  })
  await client.close()
})

test('an address that is over says so; it is never told, being as good as a key', async () => {
  const { client } = clientOf(() => json({ detail: 'Request has expired' }, 403))
  const error: unknown = await read(client).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'TINKER_FAILED', status: 403 })
  expect(String(error)).toContain('Request has expired')
  expect(String(error)).not.toContain('signature')
  await client.close()
})

test('a download that stops in the middle is over after the time for a request', async () => {
  const clock = simulatedClock()
  const { client } = clientOf(
    ({ signal }) =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new Uint8Array(100))
            signal.addEventListener('abort', () => controller.error(signal.reason))
          },
        }),
      ),
    { clock, deadlines: { request: 5_000 } },
  )
  const before = clock.now()
  await expect(clock.drive(read(client))).rejects.toMatchObject({ code: 'DEADLINE' })
  expect(clock.now() - before).toBe(5_000)
  await client.close()
})

test('a service that is out of reach in the middle is told as such', async () => {
  const { client } = clientOf(
    () =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new Uint8Array(100))
            controller.error(new TypeError('terminated'))
          },
        }),
      ),
  )
  await expect(read(client)).rejects.toMatchObject({ code: 'TINKER_UNREACHABLE' })
  await client.close()
})
