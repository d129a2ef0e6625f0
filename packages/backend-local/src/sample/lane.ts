import type { ModelShape } from '../model/shape.ts'
import { type Feeds, floats, type Program, type Results, wholes } from '../runtime/executor.ts'
import { type Batch, createBatch, type Fresh, type SequenceCache } from './batch.ts'
import { BLOCK } from './graph.ts'
import type { CacheStore } from './store.ts'

/** Log-probabilities and shares after one position, for each entry of the vocabulary. */
export interface Prediction {
  readonly logprobs: Float32Array
  readonly shares: Float32Array
}

/** A prompt being read. */
export interface Reading {
  /** Without the lane's prefix. */
  readonly tokens: Int32Array
  /** 0 gives shares like 1; they aren't used then. */
  readonly temperature: number
  /** Every position's prediction is wanted, so nothing is taken from the cache. */
  readonly everyPosition: boolean
  readonly cancelled: () => boolean
  /** After each position that was asked for: all, or the last. */
  readonly predicted: (position: number, prediction: Prediction) => void
  /** With the keys and values of all tokens. */
  readonly done: (cache: SequenceCache) => void
}

/** A reply being written. */
export interface Writing {
  readonly temperature: number
  readonly cancelled: () => boolean
  /** The next token to feed. */
  readonly next: () => number
  /** What follows it; false ends the reply. */
  readonly predicted: (prediction: Prediction) => boolean
  /** With the keys and values of what was read and fed. */
  readonly done: (cache: SequenceCache) => void
}

export interface LaneOptions {
  readonly shape: ModelShape
  readonly program: () => Promise<Program>
  /** Parameters and rotary tables. */
  readonly fixed: Feeds
  readonly store: CacheStore
  /** Keys and values that all sequences of the lane begin with. */
  readonly prefix: SequenceCache | undefined
  readonly maxRows: number
}

/** Sequences of one policy version that share a prefix (or none): prompts are read in blocks, replies are written token by token. */
export interface Lane {
  read(reading: Reading): void
  /** Waits for a place if the batch is full. */
  write(writing: Writing, cache: SequenceCache): void
  /** Reads one block of each prompt under way and writes one token of each reply. */
  advance(): Promise<void>
  readonly busy: boolean
}

export function createLane({ shape, program, fixed, store, prefix, maxRows }: LaneOptions): Lane {
  const offset = prefix?.length ?? 0
  const shared = { ...fixed, ...prefixFeeds(shape, prefix) }
  const readings = createBatch<Reading>(shape)
  const writings = createBatch<Writing>(shape)
  const toRead: Reading[] = []
  const toWrite: { readonly writing: Writing; readonly cache: SequenceCache }[] = []

  const extend = async <Row>(
    batch: Batch<Row>,
    fresh: readonly Fresh[],
    read: readonly number[],
    temperatures: readonly number[],
  ) => {
    // A product of one row takes another path through the runtime and rounds differently, so two rows are the least.
    const padded = read.length === 1 ? [read[0]!, read[0]!] : read
    const inverse = Float32Array.from(padded, (_, at) => {
      const temperature = temperatures[Math.min(at, temperatures.length - 1)]!
      return temperature === 0 ? 1 : 1 / temperature
    })
    const results = await (
      await program()
    ).run({
      ...shared,
      ...batch.feeds(fresh, offset),
      read: wholes(padded),
      inverse_temperature: floats(inverse, [padded.length, 1]),
    })
    batch.append(fresh, results)
    return (at: number) => predictionAt(results, at, shape.vocabularySize)
  }

  const readBlock = async () => {
    dropCancelled(readings)
    while (toRead.length > 0 && readings.rows.length < Math.min(maxRows, MAX_READINGS)) {
      const reading = toRead.shift()!
      if (reading.cancelled()) continue
      const found = reading.everyPosition ? undefined : store.find(reading.tokens)
      readings.add(reading, found?.cache, found?.length)
    }
    if (readings.rows.length === 0) return
    const fresh = readings.rows.map(({ tokens }, index) => {
      const start = readings.length(index)
      return tokens.subarray(start, Math.min(tokens.length, start - (start % BLOCK) + BLOCK))
    })
    const longest = Math.max(...fresh.map(({ length }) => length))
    const read: number[] = []
    const temperatures: number[] = []
    const wanted: { readonly reading: Reading; readonly position: number }[] = []
    readings.rows.forEach((reading, index) => {
      const start = readings.length(index)
      const last = fresh[index]!.length - 1
      for (let at = reading.everyPosition ? 0 : last; at <= last; at += 1) {
        if (!reading.everyPosition && start + at !== reading.tokens.length - 1) continue
        read.push(index * longest + at)
        temperatures.push(reading.temperature)
        wanted.push({ reading, position: start + at })
      }
    })
    const prediction = await extend(
      readings,
      fresh,
      read.length === 0 ? [0] : read,
      read.length === 0 ? [1] : temperatures,
    )
    wanted.forEach(({ reading, position }, at) => reading.predicted(position, prediction(at)))
    for (let index = readings.rows.length - 1; index >= 0; index -= 1) {
      const reading = readings.rows[index]!
      if (readings.length(index) < reading.tokens.length) continue
      const cache = readings.save(index)
      readings.remove(index)
      store.put(reading.tokens, cache)
      reading.done(cache)
    }
  }

  const writeToken = async () => {
    dropCancelled(writings)
    while (toWrite.length > 0 && writings.rows.length < maxRows) {
      const { writing, cache } = toWrite.shift()!
      if (!writing.cancelled()) writings.add(writing, cache)
    }
    if (writings.rows.length === 0) return
    const rows = [...writings.rows]
    const fresh = rows.map((row) => [row.next()])
    const prediction = await extend(
      writings,
      fresh,
      rows.map((_, index) => index),
      rows.map(({ temperature }) => temperature),
    )
    const goesOn = rows.map((row, at) => !row.cancelled() && row.predicted(prediction(at)))
    for (let index = rows.length - 1; index >= 0; index -= 1) {
      if (goesOn[index]) continue
      const cache = writings.save(index)
      writings.remove(index)
      rows[index]!.done(cache)
    }
  }

  return {
    read: (reading) => void toRead.push(reading),
    write: (writing, cache) => void toWrite.push({ writing, cache }),
    async advance() {
      await readBlock()
      await writeToken()
    },
    get busy() {
      return toRead.length + toWrite.length + readings.rows.length + writings.rows.length > 0
    },
  }
}

function dropCancelled(batch: Batch<{ readonly cancelled: () => boolean }>): void {
  for (let index = batch.rows.length - 1; index >= 0; index -= 1)
    if (batch.rows[index]!.cancelled()) batch.remove(index)
}

/** Prompts that are read together; each brings up to a block of tokens. */
const MAX_READINGS = 32

function prefixFeeds(
  { layers, kvHeads, headSize }: ModelShape,
  prefix: SequenceCache | undefined,
): Feeds {
  if (prefix === undefined) return {}
  const size = kvHeads * prefix.length * headSize
  const names = Array.from({ length: layers }, (_, layer) => [
    `${layer}.key`,
    `${layer}.value`,
  ]).flat()
  return Object.fromEntries(
    names.map((name, nth) => [
      `prefix.${name}`,
      floats(prefix.data.subarray(nth * size, (nth + 1) * size), [
        kvHeads,
        prefix.length,
        headSize,
      ]),
    ]),
  )
}

function predictionAt(results: Results, at: number, vocabularySize: number): Prediction {
  const range = [at * vocabularySize, (at + 1) * vocabularySize] as const
  return {
    logprobs: results['logprobs']!.subarray(...range),
    shares: results['shares']!.subarray(...range),
  }
}
