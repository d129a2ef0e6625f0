import { randomUUID } from 'node:crypto'

import { StoreError, UnsupportedError } from '@tiltyard/core'
import type { BlobInfo, BlobStore, ByteRange } from '@tiltyard/run-log'

import type { Address } from './address.ts'
import { describeAnswer, errorCodeOf, parseListPage, type Answer } from './answers.ts'
import type { S3Client, S3Request } from './client.ts'

/** What is replaced are signs of life: the next one comes soon. */
const REPLACE_PATIENCE_MS = 5_000

export interface BucketBlobsOptions {
  readonly address: Address
  readonly client: S3Client
  /** Create without the store's help where it gives none. */
  readonly allowUnsafeWrites: boolean
}

/** Blobs as objects of a bucket. */
export function bucketBlobs({ address, client, allowUnsafeWrites }: BucketBlobsOptions): BlobStore {
  const fail = (doing: string, key: string, answer: Answer) =>
    new StoreError(`can't ${doing} "${key}" in ${address.name}: ${explain(answer)}`, {
      details: { doing, key, status: answer.status, code: errorCodeOf(answer) ?? '' },
    })
  const put = (key: string, body: Uint8Array, more: Partial<S3Request> = {}) =>
    client({ method: 'PUT', url: address.urlOf(key), key, body, ...more })
  const putNew = (key: string, body: Uint8Array, signal?: AbortSignal) =>
    put(key, body, { headers: { 'if-none-match': '*' }, signal })
  const read = async (key: string, range?: ByteRange): Promise<Uint8Array | undefined> => {
    if (range !== undefined && 'start' in range && range.end <= range.start) return new Uint8Array()
    const answer = await client({
      method: 'GET',
      url: address.urlOf(key),
      key,
      ...(range === undefined ? {} : { headers: { range: rangeHeader(range) } }),
    })
    if (answer.status === 206) return answer.body
    if (answer.status === 200) return range === undefined ? answer.body : cut(answer.body, range)
    // The object ends before the range begins.
    if (answer.status === 416) return new Uint8Array()
    if (isNoSuchKey(answer)) return undefined
    throw fail('read', key, answer)
  }

  /** Once for this store: does a second create-only put of a key fail, as it must? */
  const probe = async (): Promise<boolean> => {
    const key = `.probe/${randomUUID()}`
    const first = await putNew(key, Buffer.from('first'))
    // A store that doesn't know the condition may say so.
    if (first.status === 501 || errorCodeOf(first) === 'NotImplemented') return false
    if (!isDone(first) && first.status !== 412) throw fail('write', key, first)
    try {
      // The key is random: a refusal of the first means that an earlier try of it, whose answer was lost, stands.
      return (
        (first.status === 412 ? first : await putNew(key, Buffer.from('second'))).status === 412
      )
    } finally {
      await client({ method: 'DELETE', url: address.urlOf(key), key })
    }
  }
  let probing: Promise<boolean> | undefined
  const keepsConditions = async (): Promise<boolean> => {
    probing ??= probe()
    try {
      return await probing
    } catch (error) {
      probing = undefined
      throw error
    }
  }

  return {
    name: address.name,
    async create(key, content, signal) {
      const isSafe = await keepsConditions()
      if (!isSafe && !allowUnsafeWrites) {
        throw new UnsupportedError(
          `${address.name} ignores "If-None-Match: *": two trainers could write one run and neither would know. ` +
            'Use a store that honours it, or set allowUnsafeWrites and see to it yourself',
        )
      }
      const isTaken = !isSafe && (await read(key)) !== undefined
      if (!isTaken) {
        const answer = await (isSafe ? putNew(key, content, signal) : put(key, content, { signal }))
        if (isDone(answer)) return true
        if (answer.status !== 412) throw fail('write', key, answer)
      }
      // It exists: somebody else's, or our own from a try whose answer was lost.
      const existing = await read(key)
      return existing !== undefined && Buffer.compare(existing, content) === 0
    },
    async replace(key, content, signal) {
      const answer = await put(key, content, { signal, patienceMs: REPLACE_PATIENCE_MS })
      if (!isDone(answer)) throw fail('write', key, answer)
    },
    read,
    async list(folder) {
      const prefix = folder === '' ? address.objectKey('') : `${address.objectKey(folder)}/`
      const blobs: BlobInfo[] = []
      const folders: string[] = []
      let token: string | undefined
      do {
        const answer = await client({
          method: 'GET',
          url: address.bucketUrl({
            'list-type': '2',
            delimiter: '/',
            'encoding-type': 'url',
            prefix,
            ...(token === undefined ? {} : { 'continuation-token': token }),
          }),
          key: prefix,
        })
        if (!isDone(answer)) throw fail('list', prefix, answer)
        const page = parseListPage(answer.body)
        const now = Date.parse(answer.headers.get('date') ?? '') || Date.now()
        for (const { key, bytes, modified } of page.objects) {
          const name = key.slice(prefix.length)
          // A placeholder for the folder itself, as consoles make them.
          if (name !== '') blobs.push({ name, bytes, age: Math.max(0, now - modified) })
        }
        folders.push(...page.prefixes.map((name) => name.slice(prefix.length, -1)))
        if (page.isTruncated && (page.nextToken === undefined || page.nextToken === token)) {
          throw new StoreError(
            `the listing of "${prefix}" in ${address.name} is cut off and says not how to go on; the store is at fault`,
          )
        }
        token = page.isTruncated ? page.nextToken : undefined
      } while (token !== undefined)
      return { blobs, folders }
    },
    async remove(key) {
      const answer = await client({ method: 'DELETE', url: address.urlOf(key), key })
      if (!isDone(answer) && !isNoSuchKey(answer)) throw fail('remove', key, answer)
    },
  }
}

function isDone({ status }: Answer): boolean {
  return status >= 200 && status < 300
}

/** A missing bucket is no missing key. */
function isNoSuchKey(answer: Answer): boolean {
  return answer.status === 404 && errorCodeOf(answer) !== 'NoSuchBucket'
}

function rangeHeader(range: ByteRange): string {
  return 'last' in range ? `bytes=-${range.last}` : `bytes=${range.start}-${range.end - 1}`
}

/** For a store that ignores ranges. */
function cut(content: Uint8Array, range: ByteRange): Uint8Array {
  return 'last' in range
    ? content.subarray(Math.max(0, content.length - range.last))
    : content.subarray(range.start, range.end)
}

const advice: Readonly<Record<string, string>> = {
  NoSuchBucket: 'the bucket does not exist; create it first',
  AccessDenied: 'the credentials lack the right to do that',
  InvalidAccessKeyId: 'the access key is unknown there',
  SignatureDoesNotMatch: 'the secret key, or the region, is not the right one',
  RequestTimeTooSkewed: 'the clock of this machine is wrong',
}

function explain(answer: Answer): string {
  const words = advice[errorCodeOf(answer) ?? '']
  const region = answer.headers.get('x-amz-bucket-region')
  if (answer.status >= 300 && answer.status < 400) {
    const where = region === null ? 'elsewhere' : `in region "${region}"`
    return `the bucket lies ${where}; set region or endpoint accordingly (${answer.status})`
  }
  return words === undefined ? describeAnswer(answer) : `${words} (${describeAnswer(answer)})`
}
