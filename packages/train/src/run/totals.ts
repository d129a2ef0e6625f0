/** Sums since a run began, over restarts. */
export interface Totals {
  readonly optimizer_steps: number
  readonly episodes: number
  readonly sampled_tokens: number
  readonly trained_tokens: number
  /** Wall time of steps. */
  readonly seconds: number
}

type TotalName = keyof Totals

const none: Totals = {
  optimizer_steps: 0,
  episodes: 0,
  sampled_tokens: 0,
  trained_tokens: 0,
  seconds: 0,
}

export function totalsFrom(recorded: Readonly<Record<string, number>>): Totals {
  return { ...none, ...recorded }
}

export function addTotals(totals: Totals, more: Partial<Totals>): Totals {
  return Object.fromEntries(
    Object.entries(totals).map(([name, sum]) => [name, sum + (more[name as TotalName] ?? 0)]),
  ) as unknown as Totals
}
