import { ConfigError, type RunIndex } from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'

/** Where runs lie when nothing else is said: below the folder that the program is started in. */
export const DEFAULT_RUNS = 'runs'

/** The run index at a place that a person named. @throws ConfigError */
export function openIndex(place: string): RunIndex {
  if (place.includes('://'))
    throw new ConfigError('run index', [{ at: place, message: 'expected a folder' }])
  return fsRunIndex({ folder: place })
}
