import { describe, expect, test } from 'vitest'

import { createAddress } from '../src/address.ts'
import type { Answer } from '../src/answers.ts'
import { bucketBlobs } from '../src/bucket-blobs.ts'
import type { S3Request } from '../src/client.ts'

const credentials = { accessKeyId: 'a', secretAccessKey: 's' }

interface Scripted {
  readonly status: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Blobs over a store that answers as the test says, with its requests. */
function blobsOver(answerTo: (request: S3Request, number: number) => Scripted) {
  const requests: S3Request[] = []
  const client = async (request: S3Request): Promise<Answer> => {
    requests.push(request)
    const { status, body = '', headers } = answerTo(request, requests.length)
    return { status, headers: new Headers(headers), body: Buffer.from(body) }
  }
  const address = createAddress({ bucket: 'runs', prefix: 'p', credentials })
  return { blobs: bucketBlobs({ address, client, allowUnsafeWrites: false }), requests }
}

const error = (status: number, code: string, headers = {}): Scripted => ({
  status,
  body: `<Error><Code>${code}</Code><Message>why</Message></Error>`,
  headers,
})

const text = (content: Uint8Array | undefined) => content && Buffer.from(content).toString()

describe('a part of a blob', () => {
  test.each([
    ['a store that gives it', { status: 206, body: 'cde' }, 'cde'],
    ['a store that gives the whole instead', { status: 200, body: 'abcdefg' }, 'cde'],
    ['a blob that ends before it', error(416, 'InvalidRange'), ''],
    ['a blob that isn’t there', error(404, 'NoSuchKey'), undefined],
  ])('of %s', async (_, answer, expected) => {
    const { blobs, requests } = blobsOver(() => answer)
    expect(text(await blobs.read('k', { start: 2, end: 5 }))).toBe(expected)
    expect(requests[0]?.headers).toEqual({ range: 'bytes=2-4' })
  })

  test('at its end, of a store that gives the whole instead', async () => {
    const { blobs, requests } = blobsOver(() => ({ status: 200, body: 'abcdefg' }))
    expect(text(await blobs.read('k', { last: 3 }))).toBe('efg')
    expect(text(await blobs.read('k', { last: 30 }))).toBe('abcdefg')
    expect(requests[0]?.headers).toEqual({ range: 'bytes=-3' })
  })
})

describe('a refusal says what to do', () => {
  test.each([
    [error(404, 'NoSuchBucket'), 'the bucket does not exist; create it first'],
    [error(403, 'InvalidAccessKeyId'), 'the access key is unknown there'],
    [error(403, 'SignatureDoesNotMatch'), 'the secret key, or the region, is not the right one'],
    [error(403, 'RequestTimeTooSkewed'), 'the clock of this machine is wrong'],
    [
      error(301, 'PermanentRedirect', { 'x-amz-bucket-region': 'eu-west-1' }),
      'the bucket lies in region "eu-west-1"; set region or endpoint accordingly',
    ],
    [error(307, 'TemporaryRedirect'), 'the bucket lies elsewhere'],
    [error(400, 'Odd'), '400 Odd (why)'],
  ])('%o', async (answer, words) => {
    const { blobs } = blobsOver(() => answer)
    for (const call of [
      () => blobs.read('k'),
      () => blobs.list(''),
      () => blobs.remove('k'),
      () => blobs.create('k', Buffer.from('x')),
      () => blobs.replace('k', Buffer.from('x')),
    ])
      await expect(call()).rejects.toThrow(words)
  })
})

describe('a listing', () => {
  const page = `<ListBucketResult><IsTruncated>false</IsTruncated>
    <Contents><Key>p/one/</Key><LastModified>2026-11-29T12:00:00Z</LastModified><Size>0</Size></Contents>
    <Contents><Key>p/one/a</Key><LastModified>2026-11-29T12:00:00Z</LastModified><Size>3</Size></Contents>
    <Contents><Key>p/one/b</Key><LastModified>2026-11-29T12:00:40Z</LastModified><Size>4</Size></Contents>
    </ListBucketResult>`

  test('has ages by the store’s own clock, and no placeholder of the folder itself', async () => {
    const date = 'Sun, 29 Nov 2026 12:00:30 GMT'
    const { blobs } = blobsOver(() => ({ status: 200, body: page, headers: { date } }))
    expect(await blobs.list('one')).toEqual({
      blobs: [
        { name: 'a', bytes: 3, age: 30_000 },
        { name: 'b', bytes: 4, age: 0 },
      ],
      folders: [],
    })
  })
})

describe('what the store is asked before the first write', () => {
  const isProbe = ({ key }: S3Request) => key.startsWith('.probe/')
  const methods = (requests: readonly S3Request[]) =>
    requests.map((request) => `${request.method} ${isProbe(request) ? 'probe' : request.key}`)

  test('is asked once, and what was written to ask is removed', async () => {
    const { blobs, requests } = blobsOver((request, number) =>
      isProbe(request) && number === 2 ? error(412, 'PreconditionFailed') : { status: 200 },
    )
    expect(await blobs.create('k', Buffer.from('x'))).toBe(true)
    expect(await blobs.create('l', Buffer.from('x'))).toBe(true)
    const asked = ['PUT probe', 'PUT probe', 'DELETE probe']
    expect(methods(requests)).toEqual([...asked, 'PUT k', 'PUT l'])
  })

  test.each([error(501, ''), error(400, 'NotImplemented')])(
    'may be refused by a store that doesn’t know conditions: %o',
    async (refusal) => {
      const { blobs } = blobsOver(() => refusal)
      await expect(blobs.create('k', Buffer.from('x'))).rejects.toMatchObject({
        code: 'UNSUPPORTED',
      })
    },
  )

  test('is asked again after a failure', async () => {
    const { blobs } = blobsOver(
      (_, number) =>
        [error(403, 'AccessDenied'), { status: 200 }, error(412, '')].at(number - 1) ?? {
          status: 200,
        },
    )
    await expect(blobs.create('k', Buffer.from('x'))).rejects.toThrow('lack the right')
    expect(await blobs.create('k', Buffer.from('x'))).toBe(true)
  })
})

test('a sign of life is given up soon: the next one comes', async () => {
  const { blobs, requests } = blobsOver(() => ({ status: 200 }))
  await blobs.replace('alive', Buffer.alloc(0))
  expect(requests[0]?.patienceMs).toBe(5_000)
})
