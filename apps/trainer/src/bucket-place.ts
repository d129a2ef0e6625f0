import { ConfigError, unknownName } from '@tiltyard/core'
import type { S3RunIndexOptions } from '@tiltyard/run-index-s3'

import type { Terminal } from './exit.ts'

/** `s3://bucket/prefix?region=…&endpoint=…&addressing=…` */
const pattern = /^s3:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i

const settings = ['region', 'endpoint', 'addressing'] as const

export function isBucketPlace(place: string): boolean {
  return /^s3:\/\//i.test(place)
}

/**
 * Where a bucket is and who asks: from the place, then from `AWS_REGION` or `AWS_DEFAULT_REGION`, `AWS_ENDPOINT_URL_S3` or
 * `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
 * @throws ConfigError, which shows nothing that may be a secret.
 */
export function bucketOptions(place: string, env: Terminal['env']): S3RunIndexOptions {
  const [, bucket = '', prefix = '', query = ''] = pattern.exec(place) ?? []
  if (bucket === '' || bucket.includes('@')) {
    const message =
      bucket === ''
        ? 'expected s3://bucket/prefix'
        : 'credentials don’t belong into a place; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
    throw new ConfigError('run index', [{ at: 's3://…', message }])
  }
  const given = readQuery(query)
  const region = given.get('region') ?? set(env, 'AWS_REGION', 'AWS_DEFAULT_REGION')
  const endpoint = given.get('endpoint') ?? set(env, 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL')
  const addressing = given.get('addressing') as S3RunIndexOptions['addressing']
  return {
    bucket,
    credentials: credentialsOf(env, `s3://${bucket}`),
    ...(prefix === '' ? {} : { prefix }),
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(addressing === undefined ? {} : { addressing }),
  }
}

function readQuery(query: string): ReadonlyMap<string, string> {
  const given = new Map(new URLSearchParams(query))
  const unknown = [...given.keys()].filter((name) => !settings.some((known) => known === name))
  if (unknown.length === 0) return given
  throw new ConfigError(
    'run index',
    unknown.map((name) => ({ at: 's3://…?', message: unknownName('setting', name, settings) })),
  )
}

function credentialsOf(env: Terminal['env'], at: string): S3RunIndexOptions['credentials'] {
  const accessKeyId = set(env, 'AWS_ACCESS_KEY_ID')
  const secretAccessKey = set(env, 'AWS_SECRET_ACCESS_KEY')
  const sessionToken = set(env, 'AWS_SESSION_TOKEN')
  if (accessKeyId !== undefined && secretAccessKey !== undefined)
    return {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
    }
  throw new ConfigError('run index', [
    {
      at,
      message:
        'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; from a profile or a role: eval "$(aws configure export-credentials --format env)"',
    },
  ])
}

/** The first of the variables that has a value. */
function set(env: Terminal['env'], ...names: readonly string[]): string | undefined {
  return names.map((name) => env[name]).find((value) => value !== undefined && value !== '')
}
