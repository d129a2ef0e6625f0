import { checkOptions, type Logger, type RunIndex } from '@tiltyard/core'
import { blobRunIndex } from '@tiltyard/run-log'
import { z } from 'zod'

import { nodeFiles, type Files } from './files.ts'
import { folderBlobs } from './folder-blobs.ts'

export interface FsRunIndexOptions {
  /** Holds a folder for each run. Made when the first run is claimed. */
  readonly folder: string
  /** Longest time until an event is durable without a flush, in milliseconds. Default 1000. */
  readonly batchMs?: number
  /** Hears of what isn't an error of a call: a missed sign of life. Default: silent. */
  readonly logger?: Logger
}

const optionsSchema = z.strictObject({
  folder: z.string().min(1),
  batchMs: z.number().positive().optional(),
  logger: z.custom<Logger>().optional(),
})

/** Characters that make a batch, and that may wait while the disk is slow. */
const BATCH_SIZE = 4 * 1024 * 1024
const BUFFER_SIZE = 32 * 1024 * 1024
const SIGN_OF_LIFE_MS = 10_000

/**
 * A run index in a folder. Nothing is read or written before the first call. A batch is one write and one `fdatasync` per file;
 * a file has one writer; what must not exist is made by `link`.
 * @throws ConfigError for options that aren't right.
 */
export function fsRunIndex(options: FsRunIndexOptions): RunIndex {
  return fsRunIndexOn(nodeFiles, options)
}

/** With the files of a test. */
export function fsRunIndexOn(files: Files, options: FsRunIndexOptions): RunIndex {
  const { folder, batchMs = 1_000, logger } = checkOptions('fsRunIndex', optionsSchema, options)
  return blobRunIndex({
    blobs: folderBlobs(folder, files),
    pace: {
      batchMs,
      batchSize: BATCH_SIZE,
      bufferSize: BUFFER_SIZE,
      signOfLifeMs: SIGN_OF_LIFE_MS,
    },
    logger,
  })
}
