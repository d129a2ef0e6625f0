import { checkContract, ConfigError, type RunIndex } from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import type * as RunIndexS3 from '@tiltyard/run-index-s3'

import { importAdapter } from './adapter.ts'
import { bucketOptions, isBucketPlace } from './bucket-place.ts'
import type { Terminal } from './exit.ts'

/** Where runs lie when nothing else is said: below the folder that the program is started in. */
export const DEFAULT_RUNS = 'runs'

/** What `--index` takes, for help texts. */
export const PLACE_HELP = 'folder of the runs, or s3://bucket/prefix'

/**
 * The run index at a place that a person named: a folder, or `s3://bucket/prefix` with the usual AWS variables of `env`.
 * The bucket's adapter is no dependency of this program: most people keep runs in a folder, and who uses a bucket has the adapter
 * in their project already, in the version that their recipe writes with.
 * @throws ConfigError for a place that can't be one, a variable that is missing, or the package to install.
 */
export async function openIndex(place: string, env: Terminal['env']): Promise<RunIndex> {
  if (isBucketPlace(place)) {
    const options = bucketOptions(place, env)
    const adapter = await importAdapter<typeof RunIndexS3>(
      '@tiltyard/run-index-s3',
      'runs in a bucket',
    )
    const index = adapter.s3RunIndex(options)
    checkContract('index', 'run-index/1', index)
    return index
  }
  if (place.includes('://')) {
    const scheme = `${place.slice(0, place.indexOf('://'))}://…`
    throw new ConfigError('run index', [{ at: scheme, message: `expected a ${PLACE_HELP}` }])
  }
  return fsRunIndex({ folder: place })
}

/** The place to name for an index that a recipe opened, by the index's name; undefined where none can be told. */
export function placeOf(name: string): string | undefined {
  if (isBucketPlace(name)) return name
  return /^folder (.+)$/s.exec(name)?.[1]
}
