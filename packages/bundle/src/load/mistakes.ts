import { ConfigError, type Mistake, mistakesOf } from '@tiltyard/core'
import { z } from 'zod'

import { brokenLine, lineOf } from './json-text.ts'

/** A JSON text with its file's name; for a part of a file, the place of the whole part instead of a line for each key. */
export interface JsonSource {
  readonly file: string
  readonly text: string
  readonly place?: string
}

/** Collects everything that is wrong, so that a person reads it once. */
export interface Mistakes {
  add(at: string, message: string): void
  /** The line of a path in a JSON text: `bundle.json:7`. */
  place(source: JsonSource, path: readonly PropertyKey[]): string
  addAt(source: JsonSource, path: readonly PropertyKey[], message: string): void
  /** The parsed text checked by the schema; undefined when something is wrong with it. */
  read<Schema extends z.ZodType>(source: JsonSource, schema: Schema): z.output<Schema> | undefined
  readonly count: number
  /** @throws ConfigError with all of them. */
  fail(what: string): never
}

export function collectMistakes(): Mistakes {
  const found: Mistake[] = []
  const add = (at: string, message: string) => {
    found.push({ at, message })
  }
  const addAt = (source: JsonSource, path: readonly PropertyKey[], message: string) => {
    add(placeOf(source, path), message)
  }
  return {
    add,
    place: placeOf,
    addAt,
    read(source, schema) {
      let value: unknown
      try {
        value = JSON.parse(source.text)
      } catch {
        add(source.place ?? `${source.file}:${brokenLine(source.text) ?? 1}`, 'this is no JSON')
        return undefined
      }
      const result = schema.safeParse(value)
      if (result.success) return result.data
      for (const issue of result.error.issues) {
        const keys = issue.code === 'unrecognized_keys' ? issue.keys : []
        for (const [index, { at, message }] of mistakesOf(
          new z.ZodError([issue]),
          schema,
        ).entries())
          addAt(
            source,
            [...issue.path, ...keys.slice(index, index + 1)],
            at === '' ? message : `${at}: ${message}`,
          )
      }
      return undefined
    },
    get count() {
      return found.length
    },
    fail(what) {
      throw new ConfigError(what, withFewerRepeats(found))
    },
  }
}

function placeOf({ file, text, place }: JsonSource, path: readonly PropertyKey[]): string {
  return place ?? `${file}:${lineOf(text, path)}`
}

/** At how many places one and the same mistake is shown. */
export const MAX_PLACES_OF_A_MISTAKE = 5

/** A mistake that stands at many places is shown at a few, and then counted. */
function withFewerRepeats(found: readonly Mistake[]): readonly Mistake[] {
  const places = new Map<string, number>()
  const kept = found.filter(({ message }) => {
    const count = (places.get(message) ?? 0) + 1
    places.set(message, count)
    return count <= MAX_PLACES_OF_A_MISTAKE
  })
  const more = [...places].flatMap(([message, count]) =>
    count > MAX_PLACES_OF_A_MISTAKE
      ? [{ at: `at ${count - MAX_PLACES_OF_A_MISTAKE} more places`, message }]
      : [],
  )
  return [...kept, ...more]
}
