import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { type Bundle, type Change, loadBundle, type LoadOptions } from '@tiltyard/bundle'
import type { JsonObject, JsonValue } from '@tiltyard/core'

import { fromEnvironment } from '../../../../test/support/machine.ts'
import { pythonJson } from '../../src/python-text.ts'
import type { Order, Store } from '../../src/store.ts'
import { wholeOrder } from '../../src/tools/records.ts'

/** The benchmark's data with the expected results beside them. */
export const retailData = fromEnvironment('TILTYARD_TAU2_DATA')

const retailFolder = fileURLToPath(new URL('../../', import.meta.url))

export function loadRetail(data: string, options: LoadOptions = {}): Promise<Bundle> {
  return loadBundle(retailFolder, { data, ...options })
}

export interface ExpectedChange {
  readonly path: string
  readonly before: JsonValue
  readonly after: JsonValue
}

interface GoldDiffs {
  readonly meta: { readonly initial_db_sha256: string }
  readonly tasks: Readonly<
    Record<
      string,
      {
        readonly gold_errors: readonly { readonly name: string; readonly error: string }[]
        readonly changes: readonly ExpectedChange[]
        readonly db_sha256: string
      }
    >
  >
}

export interface ToolVectors {
  readonly scenarios: readonly {
    readonly id: string
    readonly calls: readonly {
      readonly name: string
      readonly arguments: JsonObject
      readonly content: string
      readonly error: boolean
    }[]
    readonly changes: readonly ExpectedChange[]
    readonly db_sha256: string
  }[]
}

export function goldDiffs(data: string): GoldDiffs {
  return readJson(data, 'gold-diffs.json') as GoldDiffs
}

export function toolVectors(data: string): ToolVectors {
  return readJson(data, 'tool-vectors.json') as ToolVectors
}

function readJson(data: string, file: string): unknown {
  return JSON.parse(readFileSync(join(data, file), 'utf8'))
}

/** The benchmark's digest of a whole store. Records are printed once: stores share those that weren't changed. */
export function storeHash({ products, users, orders }: Store): string {
  const tables = [
    ['orders', orders, (record: object) => wholeOrder(record as Order)],
    ['products', products, (record: object) => record as JsonValue],
    ['users', users, (record: object) => record as JsonValue],
  ] as const
  const texts = tables.map(([name, table, whole]) => {
    const records = Object.keys(table)
      .toSorted()
      .map((id) => `"${id}": ${printed(table[id]!, whole)}`)
    return `"${name}": {${records.join(', ')}}`
  })
  return createHash('sha256')
    .update(`{${texts.join(', ')}}`)
    .digest('hex')
}

const texts = new WeakMap<object, string>()

function printed(record: object, whole: (record: object) => JsonValue): string {
  const text = texts.get(record) ?? pythonJson(whole(record), { sorted: true })
  texts.set(record, text)
  return text
}

/** Changes as the expected results write them, in an order of their own: null for what isn't there. */
export function comparable(
  changes: readonly (Change | ExpectedChange)[],
): readonly ExpectedChange[] {
  return changes
    .map(({ path, before = null, after = null }) => ({ path, before, after }))
    .toSorted((left, right) => (left.path < right.path ? -1 : 1))
}
