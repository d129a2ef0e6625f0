import { readFileSync } from 'node:fs'

/** What work takes, in milliseconds: by the clock, and by the processor with all threads, which other programs disturb less. */
export interface Taken {
  readonly wall: number
  readonly processor: number
}

export async function takenBy(work: () => Promise<unknown>): Promise<Taken> {
  const began = performance.now()
  const cpu = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(cpu)
  return { wall: performance.now() - began, processor: (user + system) / 1_000 }
}

/**
 * Processor time of this thread so far in milliseconds, where the system tells it (Linux). It bounds the rate of a process that
 * has a core to itself.
 */
export function threadMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    return Number.NaN
  }
}

/** Each the median of some runs. */
export async function medianOf(times: number, work: () => Promise<unknown>): Promise<Taken> {
  const runs: Taken[] = []
  for (let time = 0; time < times; time += 1) runs.push(await takenBy(work))
  const median = (values: readonly number[]) =>
    values.toSorted((a, b) => a - b)[Math.floor(times / 2)]!
  return {
    wall: median(runs.map(({ wall }) => wall)),
    processor: median(runs.map(({ processor }) => processor)),
  }
}

export async function count(items: AsyncIterable<unknown>): Promise<number> {
  let found = 0
  for await (const _ of items) found += 1
  return found
}

/** One line of the report. */
export function report(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(58)} ${value}\n`)
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`
export const taken = ({ wall, processor }: Taken): string =>
  `${ms(wall)} (processor ${ms(processor)})`
export const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MB`
