import type { RunIndex } from '@tiltyard/core'
import { blobRunIndex } from '@tiltyard/run-log'

import { createAddress } from './address.ts'
import { bucketBlobs } from './bucket-blobs.ts'
import { createClient } from './client.ts'
import { checkS3Options, type S3RunIndexOptions } from './options.ts'

const BATCH_MS = 15_000
/** Characters of records, before they are compressed, that make a batch; and that may wait while the store is slow. */
const BATCH_SIZE = 8 * 1024 * 1024
const BUFFER_SIZE = 64 * 1024 * 1024
const SIGN_OF_LIFE_MS = 20_000

/**
 * A run index in an S3-compatible bucket. Nothing is sent before the first call; the first write asks the store whether it honours
 * create-only puts. A batch is one object of records and one of lines for each step that it touches, and one of the run's log.
 * @throws ConfigError for options that aren't right.
 */
export function s3RunIndex(options: S3RunIndexOptions): RunIndex {
  checkS3Options(options)
  const { allowUnsafeWrites = false, batchMs = BATCH_MS, logger } = options
  const address = createAddress(options)
  return blobRunIndex({
    blobs: bucketBlobs({
      address,
      client: createClient(address.name, options),
      allowUnsafeWrites,
    }),
    pace: {
      batchMs,
      batchSize: BATCH_SIZE,
      bufferSize: BUFFER_SIZE,
      signOfLifeMs: SIGN_OF_LIFE_MS,
    },
    logger,
  })
}
