import { checkOptions, isPlainAddress, type Logger } from '@tiltyard/core'
import { z } from 'zod'

import type { CredentialsSource } from './credentials.ts'

export interface S3RunIndexOptions {
  readonly bucket: string
  /** Where in the bucket the runs lie, such as `teams/desk/runs`. Default: at its root. */
  readonly prefix?: string
  /** Default `us-east-1`. */
  readonly region?: string
  /** Of a store other than AWS, such as `https://minio.example:9000`. Default: AWS in the region. */
  readonly endpoint?: string
  /** Default: `virtual-host` on AWS, `path` elsewhere and for buckets with a dot in their name. */
  readonly addressing?: 'path' | 'virtual-host'
  /** A value, or a function that is asked again when they expire or are refused as expired. */
  readonly credentials: CredentialsSource
  /** Longest time until an event is durable without a flush, in milliseconds. Default 15 000. */
  readonly batchMs?: number
  /** Longest time of one attempt, in milliseconds. Default 30 000. */
  readonly timeoutMs?: number
  /**
   * For how long, in milliseconds, a request that met a busy or broken store is sent again, with waits that grow to 5 s and follow
   * `Retry-After`; then it fails. Default 120 000; at most 10 000 where no connection ever came about. 0: one attempt.
   */
  readonly patienceMs?: number
  /**
   * Go on where the store ignores conditions on writes: then nothing but luck keeps two trainers from writing one run.
   * Default false: the first claim of a run is refused.
   */
  readonly allowUnsafeWrites?: boolean
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
  /** Hears of every request that was answered or failed, retries too. */
  readonly onRequest?: (request: RequestReport) => void
  /** Hears of what isn't an error of a call. Default: silent. */
  readonly logger?: Logger
}

/** A request, for counting and for logs: no key of an object holds a secret. */
export interface RequestReport {
  readonly method: string
  readonly key: string
  /** Absent when there was no answer. */
  readonly status?: number
  readonly attempt: number
  readonly ms: number
}

const callable = z.custom<(...args: never[]) => unknown>((value) => typeof value === 'function', {
  message: 'expected a function',
})

const credentialsSchema = z.strictObject({
  accessKeyId: z.string().min(1),
  secretAccessKey: z.string().min(1),
  sessionToken: z.string().optional(),
  expiration: z.date().optional(),
})

const optionsSchema = z.strictObject({
  bucket: z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
      'expected a bucket name: 3 to 63 of a–z, 0–9, "-", "."',
    ),
  prefix: z
    .string()
    .refine((prefix) => !prefix.split('/').some((part) => part === '.' || part === '..'), {
      message: 'may not hold "." or ".." as a part',
    })
    .optional(),
  region: z.string().min(1).optional(),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .refine(isPlainAddress, {
      message:
        'an address without user, query or fragment; credentials have an option of their own',
    })
    .optional(),
  addressing: z.enum(['path', 'virtual-host']).optional(),
  credentials: z.union([credentialsSchema, callable], {
    error: 'expected { accessKeyId, secretAccessKey, sessionToken? } or a function that gives them',
  }),
  batchMs: z.number().positive().optional(),
  timeoutMs: z.number().positive().optional(),
  patienceMs: z.number().nonnegative().optional(),
  allowUnsafeWrites: z.boolean().optional(),
  fetch: callable.optional(),
  onRequest: callable.optional(),
  logger: z.custom<Logger>().optional(),
})

/** @throws ConfigError, which shows no credential. */
export function checkS3Options(options: S3RunIndexOptions): void {
  checkOptions('s3RunIndex', optionsSchema, options)
}
