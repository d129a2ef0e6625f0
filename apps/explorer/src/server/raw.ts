import type { EpisodeRecord } from '@tiltyard/core'

/** The record as JSON for people and their scripts: token ids and log-probabilities as lists of numbers, one list a line. */
export function rawRecord(record: EpisodeRecord): string {
  const lists: string[] = []
  // `JSON.stringify` would give each number a line. A drawn text, which no record holds, keeps the place of each list.
  const mark = `list-${crypto.randomUUID()}-`
  const text = JSON.stringify(
    record,
    (_, value: unknown) => {
      if (!(value instanceof Int32Array || value instanceof Float32Array)) return value
      lists.push(JSON.stringify(Array.from(value)))
      return `${mark}${lists.length - 1}`
    },
    2,
  )
  return text.replaceAll(
    new RegExp(`"${mark}(\\d+)"`, 'g'),
    (_, index: string) => lists[Number(index)]!,
  )
}
