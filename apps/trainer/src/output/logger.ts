import type { LogFields, Logger } from '@tiltyard/core'

import type { Screen } from './screen.ts'
import { paint } from './screen.ts'

/** Warnings and errors of the libraries as lines between the progress; what they merely note is left out. */
export function screenLogger(screen: Screen): Logger {
  const { yellow, red } = paint(screen)
  const line = (mark: string) => (message: string, fields?: LogFields) => {
    screen.line(`${mark} ${message}${shown(fields)}`)
  }
  return { debug() {}, info() {}, warn: line(yellow('warning:')), error: line(red('error:')) }
}

function shown(fields: LogFields | undefined): string {
  const parts = Object.entries(fields ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  )
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}
