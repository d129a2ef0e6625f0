import { describe, expect, test } from 'vitest'

import { importAdapter } from '../src/adapter.ts'
import { bucketOptions } from '../src/bucket-place.ts'
import { openIndex } from '../src/open-index.ts'
import { run } from './support/terminal.ts'

const keys = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'SENTINEL-SECRET' }

test('a folder and a bucket are both a run index, named by their place', async () => {
  const places = await Promise.all([
    openIndex('some/runs', {}),
    openIndex('s3://team-runs/desk/2026', keys),
  ])
  expect(places.map(({ specVersion, name }) => [specVersion, name])).toEqual([
    ['run-index/1', 'folder some/runs'],
    ['run-index/1', 's3://team-runs/desk/2026'],
  ])
})

describe('a bucket is described by its place and the usual variables', () => {
  test.each([
    ['s3://b-1', {}, {}],
    ['s3://b-1/', {}, {}],
    ['s3://b-1/x/y', {}, { prefix: 'x/y' }],
    ['s3://b-1', { AWS_REGION: 'eu-west-1' }, { region: 'eu-west-1' }],
    ['s3://b-1', { AWS_DEFAULT_REGION: 'eu-west-1', AWS_REGION: '' }, { region: 'eu-west-1' }],
    ['s3://b-1', { AWS_ENDPOINT_URL: 'http://a' }, { endpoint: 'http://a' }],
    [
      's3://b-1',
      { AWS_ENDPOINT_URL: 'http://a', AWS_ENDPOINT_URL_S3: 'http://s3' },
      { endpoint: 'http://s3' },
    ],
    [
      's3://b-1/p?region=x&endpoint=https%3A%2F%2Fs.example&addressing=virtual-host',
      { AWS_REGION: 'y', AWS_ENDPOINT_URL: 'http://a' },
      { prefix: 'p', region: 'x', endpoint: 'https://s.example', addressing: 'virtual-host' },
    ],
  ])('%s with %j', (place, env, expected) => {
    expect(bucketOptions(place, { ...keys, ...env })).toEqual({
      bucket: 'b-1',
      credentials: { accessKeyId: 'AKIA', secretAccessKey: 'SENTINEL-SECRET' },
      ...expected,
    })
  })

  test('a session token goes along', () => {
    expect(bucketOptions('s3://b-1', { ...keys, AWS_SESSION_TOKEN: 'T' }).credentials).toEqual({
      accessKeyId: 'AKIA',
      secretAccessKey: 'SENTINEL-SECRET',
      sessionToken: 'T',
    })
  })
})

describe('a mistake in a place is told in one line, with exit code 2 and without secrets', () => {
  test.each([
    ['gs://bucket/runs', keys, 'expected a folder of the runs, or s3://bucket/prefix'],
    ['https://key:SENTINEL-SECRET@x/y', keys, 'https://…: expected a folder'],
    ['s3:///runs', keys, 'expected s3://bucket/prefix'],
    ['s3://key:SENTINEL-SECRET@bucket/runs', keys, 'credentials don’t belong into a place'],
    ['s3://bucket/runs?regio=x', keys, 'unknown setting "regio"; did you mean "region"?'],
    ['s3://bucket/runs?addressing=dns', keys, 'addressing'],
    ['s3://bucket/../runs', keys, 'prefix: may not hold "." or ".." as a part'],
    ['s3://Bucket/runs', keys, 'expected a bucket name'],
    ['s3://bucket/runs?endpoint=http%3A%2F%2Fme%3ASENTINEL-SECRET%40x', keys, 'endpoint'],
    ['s3://bucket/runs', {}, 's3://bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
    [
      's3://bucket/runs',
      { AWS_SECRET_ACCESS_KEY: 'SENTINEL-SECRET' },
      'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    ],
  ])('%s', async (place, env, message) => {
    const { code, stdout, stderr } = await run(['index', 'ls', '--index', place], { env })
    expect(stderr).toContain(message)
    expect(stderr.trimEnd()).not.toContain('\n')
    expect(stderr).not.toContain('SENTINEL-SECRET')
    expect([code, stdout]).toEqual([2, ''])
  })

  test('an adapter that is not installed is named with the command to install it', async () => {
    await expect(importAdapter('@tiltyard/run-index-tape', 'runs on a tape')).rejects.toThrow(
      "adapter: @tiltyard/run-index-tape: runs on a tape need it, and it isn't installed here; try: npm install @tiltyard/run-index-tape",
    )
  })
})
