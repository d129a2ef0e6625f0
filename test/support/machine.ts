import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

import { describe } from 'vitest'

/** Something that a test needs and that not every machine has. */
export interface Requirement {
  readonly what: string
  /** A path or address; undefined where the machine lacks it. */
  readonly found: string | undefined
}

/** A program on the PATH. */
export function program(name: string): Requirement {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return { what: name, found: folders.map((folder) => join(folder, name)).find(isExecutable) }
}

/** Something whose place an environment variable tells. */
export function fromEnvironment(variable: string): Requirement {
  const value = process.env[variable]
  return { what: variable, found: value === '' ? undefined : value }
}

/**
 * A `describe` whose tests are skipped, with the reason in their name, where the machine lacks the
 * requirement. With `TILTYARD_REQUIRE_ALL=1`, as in CI, lacking it is an error, unless
 * `TILTYARD_MAY_LACK` names it. The body also runs to name the skipped tests, so it uses `found` inside
 * tests and hooks only.
 */
export function describeWith(
  { what, found }: Requirement,
  name: string,
  body: (found: string) => void,
): void {
  const lacking = found === undefined
  const isRequired =
    process.env['TILTYARD_REQUIRE_ALL'] === '1' && process.env['TILTYARD_MAY_LACK'] !== what
  if (lacking && isRequired) {
    throw new Error(`"${name}" needs ${what}, and TILTYARD_REQUIRE_ALL=1 lets nothing be skipped.`)
  }
  describe.skipIf(lacking)(`${name}${lacking ? ` (needs ${what})` : ''}`, () => {
    body(found ?? '')
  })
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
