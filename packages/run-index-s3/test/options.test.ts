import { expect, test } from 'vitest'

import { s3RunIndex, type S3RunIndexOptions } from '../src/index.ts'

const good: S3RunIndexOptions = {
  bucket: 'runs',
  credentials: { accessKeyId: 'AKID', secretAccessKey: 'SENTINEL-SECRET' },
}

test('an index is named by its bucket and prefix', () => {
  expect(s3RunIndex({ ...good, prefix: 'a/b' }).name).toBe('s3://runs/a/b')
})

test.each([
  [{ bucket: 'Not A Bucket' }, 'bucket: expected a bucket name'],
  [{ prefix: 'a/../b' }, 'prefix: may not hold'],
  [{ endpoint: 'minio:9000' }, 'endpoint'],
  [{ endpoint: 'https://user:SENTINEL-SECRET@host' }, 'endpoint: an address without user'],
  [{ addressing: 'host' }, 'addressing'],
  [{ credentials: { accessKeyId: 'AKID' } }, 'credentials: expected { accessKeyId'],
  [{ credential: good.credentials }, 'did you mean "credentials"?'],
  [{ timeoutMs: 0 }, 'timeoutMs'],
])('%j is refused without showing a secret', (wrong, message) => {
  const make = () => s3RunIndex({ ...good, ...(wrong as Partial<S3RunIndexOptions>) })
  expect(make).toThrow(message)
  expect(make).not.toThrow('SENTINEL-SECRET')
})
