/** Wall time of work in milliseconds: the median of some runs. */
export async function medianMs(times: number, work: () => Promise<unknown>): Promise<number> {
  const taken: number[] = []
  for (let time = 0; time < times; time += 1) {
    const began = performance.now()
    await work()
    taken.push(performance.now() - began)
  }
  return taken.toSorted((a, b) => a - b)[Math.floor(times / 2)]!
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

export const ms = (value: number): string =>
  `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`
export const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MB`
