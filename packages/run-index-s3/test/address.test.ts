import { expect, test } from 'vitest'

import { createAddress } from '../src/address.ts'
import type { S3RunIndexOptions } from '../src/options.ts'

const credentials = { accessKeyId: 'a', secretAccessKey: 's' }
const address = (options: Partial<S3RunIndexOptions>) =>
  createAddress({ bucket: 'runs', credentials, ...options })

test.each<[string, Partial<S3RunIndexOptions>, string]>([
  ['AWS', {}, 'https://runs.s3.us-east-1.amazonaws.com/k'],
  ['AWS in a region', { region: 'eu-west-1' }, 'https://runs.s3.eu-west-1.amazonaws.com/k'],
  [
    'a dotted bucket, whose certificate would not fit',
    { bucket: 'my.runs' },
    'https://s3.us-east-1.amazonaws.com/my.runs/k',
  ],
  ['another store', { endpoint: 'http://minio:9000' }, 'http://minio:9000/runs/k'],
  ['a store below a path', { endpoint: 'https://host/s3/' }, 'https://host/s3/runs/k'],
  [
    'another store by host',
    { endpoint: 'https://store.example', addressing: 'virtual-host' },
    'https://runs.store.example/k',
  ],
  [
    'a prefix',
    { prefix: '/teams/ä b/' },
    'https://runs.s3.us-east-1.amazonaws.com/teams/%C3%A4%20b/k',
  ],
])('%s: %j is %s', (_, options, url) => {
  expect(address(options).urlOf('k')).toBe(url)
})

test('a question to the bucket has a slash before its query', () => {
  expect(address({}).bucketUrl({ prefix: 'a b/~c' })).toBe(
    'https://runs.s3.us-east-1.amazonaws.com/?prefix=a%20b%2F%7Ec',
  )
})

test('the name tells bucket and prefix', () => {
  expect(address({ prefix: 'a/b/' }).name).toBe('s3://runs/a/b')
})
