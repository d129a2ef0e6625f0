import type { S3RunIndexOptions } from './options.ts'

export interface Address {
  /** `s3://bucket/prefix`, for messages. */
  readonly name: string
  /** Of the bucket itself, with a query. */
  bucketUrl(query: Readonly<Record<string, string>>): string
  /** Of a blob. */
  urlOf(key: string): string
  /** The object's key in the bucket. */
  objectKey(key: string): string
}

export function createAddress(options: S3RunIndexOptions): Address {
  const { bucket, region = 'us-east-1' } = options
  const isAws = options.endpoint === undefined
  const endpoint = new URL(options.endpoint ?? `https://s3.${region}.amazonaws.com`)
  const addressing =
    options.addressing ?? (isAws && !bucket.includes('.') ? 'virtual-host' : 'path')
  const prefix = (options.prefix ?? '').split('/').filter((part) => part !== '')
  const objectKey = (key: string) => [...prefix, key].join('/')

  const base =
    addressing === 'path'
      ? `${endpoint.origin}${endpoint.pathname.replace(/\/$/, '')}/${bucket}`
      : `${endpoint.protocol}//${bucket}.${endpoint.host}${endpoint.pathname.replace(/\/$/, '')}`
  return {
    name: `s3://${[bucket, ...prefix].join('/')}`,
    // A signature covers the slash before the query.
    bucketUrl: (query) =>
      `${base}/?${new URLSearchParams(query).toString().replaceAll('+', '%20')}`,
    urlOf: (key) => `${base}/${objectKey(key).split('/').map(encodeURIComponent).join('/')}`,
    objectKey,
  }
}
