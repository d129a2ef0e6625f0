import { ConfigError, deriveSeed, randomStream, type Dataset, type GroupPlan } from '@tiltyard/core'

import { checkCounts } from './counts.ts'

export interface InterleavedSource {
  /** With an end. */
  readonly dataset: Dataset
  /** Its share of the groups, relative to the others'. Default 1. */
  readonly weight?: number
}

export interface InterleaveOptions {
  readonly name: string
  readonly sources: readonly InterleavedSource[]
  readonly groupsPerBatch: number
  /** Default: the least over the sources of ⌊groups / (share · groupsPerBatch)⌋, and at least 1. */
  readonly batches?: number
}

/**
 * Mixes datasets: each place of a batch draws a source by its share, then takes that source's next group in a shuffled order, a
 * new one for each pass. Sources of 10 and 20 groups with equal shares, 4 in a batch, make 5 batches. Reads every batch of the
 * sources once, for their sizes.
 * @throws ConfigError for a source without end or without groups, a weight that is not above 0, and a number that is no positive integer.
 */
export async function interleave(options: InterleaveOptions): Promise<Dataset> {
  const { name, groupsPerBatch } = options
  checkCounts(name, { groupsPerBatch, batches: options.batches })
  const sources = await Promise.all(options.sources.map(sizedSource))
  const mistakes = sources.flatMap(({ places, weight, dataset }, index) => {
    const at = `sources.${index}`
    return [
      ...(places.length > 0 ? [] : [{ at, message: `${dataset.name} has no groups, or no end` }]),
      ...(weight > 0
        ? []
        : [{ at: `${at}.weight`, message: `expected more than 0, got ${weight}` }]),
    ]
  })
  if (sources.length === 0) mistakes.push({ at: 'sources', message: 'there are none' })
  if (mistakes.length > 0) throw new ConfigError(`dataset ${name}`, mistakes)
  const total = sources.reduce((sum, { weight }) => sum + weight, 0)
  const shares = sources.map(({ weight }) => weight / total)
  const whole = sources.map(({ places }, index) =>
    Math.floor(places.length / (shares[index]! * groupsPerBatch)),
  )
  const batches = options.batches ?? Math.max(1, Math.min(...whole))
  const draws = new Map<number, Draws>()

  return {
    specVersion: 'dataset/1',
    name,
    fingerprint: fingerprintOf(sources, shares, groupsPerBatch, batches),
    batches,
    async batch(step, seed) {
      if (step >= batches) return undefined
      const drawn = draws.get(seed) ?? createDraws(shares, groupsPerBatch, seed)
      draws.set(seed, drawn)
      return await Promise.all(
        drawn.of(step).map(({ source, turn }) => groupOf(sources[source]!, source, turn, seed)),
      )
    },
    position: (step) => ({ batch: step }),
  }
}

interface SizedSource {
  readonly dataset: Dataset
  readonly weight: number
  /** Batch and place of each of its groups. */
  readonly places: readonly (readonly [batch: number, place: number])[]
}

async function sizedSource({ dataset, weight = 1 }: InterleavedSource): Promise<SizedSource> {
  const numbers = Array.from({ length: dataset.batches ?? 0 }, (_, batch) => batch)
  const sizes = await Promise.all(
    numbers.map(async (batch) => (await dataset.batch(batch, 0))?.length ?? 0),
  )
  const places = sizes.flatMap((size, batch) =>
    Array.from({ length: size }, (_, place) => [batch, place] as const),
  )
  return { dataset, weight, places }
}

/** Which source each place of each batch draws, and how many it drew before. */
interface Draws {
  of(batch: number): readonly { readonly source: number; readonly turn: number }[]
}

function createDraws(shares: readonly number[], groupsPerBatch: number, seed: number): Draws {
  const batches: { readonly source: number; readonly turn: number }[][] = []
  const turns = shares.map(() => 0)
  const random = randomStream(seed, 'interleave')
  const draw = () => {
    let left = random.next()
    const found = shares.findIndex((share) => (left -= share) < 0)
    const source = found === -1 ? shares.length - 1 : found
    turns[source]! += 1
    return { source, turn: turns[source]! - 1 }
  }
  return {
    of(batch) {
      while (batches.length <= batch)
        batches.push(Array.from({ length: groupsPerBatch }, () => draw()))
      return batches[batch]!
    },
  }
}

async function groupOf(
  { dataset, places }: SizedSource,
  source: number,
  turn: number,
  seed: number,
): Promise<GroupPlan> {
  const pass = Math.floor(turn / places.length)
  const order = randomStream(seed, 'interleave', source, pass).shuffle(places)
  const [batch, place] = order[turn % places.length]!
  const plan = (await dataset.batch(batch, seed))?.[place]
  if (plan === undefined) {
    throw new ConfigError(`dataset ${dataset.name}`, [
      { at: `batch ${batch}`, message: `it had a group ${place} before, and has none now` },
    ])
  }
  return { ...plan, seed: deriveSeed(plan.seed, 'interleave', pass) }
}

function fingerprintOf(
  sources: readonly SizedSource[],
  shares: readonly number[],
  groupsPerBatch: number,
  batches: number,
): string {
  const hash = sources.reduce(
    (before, { dataset }, index) => deriveSeed(before, dataset.fingerprint, String(shares[index])),
    deriveSeed(0, groupsPerBatch, batches),
  )
  return `interleaved:${sources.length}:${hash.toString(16).padStart(8, '0')}`
}
