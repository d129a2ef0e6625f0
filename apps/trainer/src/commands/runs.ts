import { NotFoundError, type RunIndex, type RunSummary } from '@tiltyard/core'

/** `desk`, then `desk-2`, `desk-3`…: the first name of a recipe that no run has. */
export async function freeRunName(index: RunIndex, base: string): Promise<string> {
  const taken = new Set((await runsOf(index, base)).map(({ name }) => name))
  if (!taken.has(base)) return base
  let number = 2
  while (taken.has(`${base}-${number}`)) number += 1
  return `${base}-${number}`
}

/** The recipe's newest run that has not come to its end. @throws NotFoundError saying which runs there are. */
export async function unfinishedRun(index: RunIndex, base: string): Promise<string> {
  const runs = await runsOf(index, base)
  const open = runs.filter(({ status }) => status !== 'completed')
  const newest = open.toSorted((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0))[0]
  if (newest !== undefined) return newest.name
  const there = runs.map(({ name }) => name).join(', ')
  throw new NotFoundError(
    runs.length === 0
      ? `there is no run of "${base}" to resume; leave out --resume to start one`
      : `every run of "${base}" is complete (${there}); leave out --resume to start another, or name one with --run and more --steps`,
  )
}

/** In order. */
export async function runNames(index: RunIndex): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { name } of index.runs()) names.push(name)
  return names
}

/** Runs with a recipe's base name, their warm starts apart. */
async function runsOf(index: RunIndex, base: string): Promise<readonly RunSummary[]> {
  const found: RunSummary[] = []
  for await (const run of index.runs()) {
    if (
      run.name === base ||
      (run.name.startsWith(`${base}-`) && /^\d+$/.test(run.name.slice(base.length + 1)))
    ) {
      found.push(run)
    }
  }
  return found
}
