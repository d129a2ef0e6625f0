import type { Waits } from './options.ts'

/** Bounds on parts of a play that no limit bounds, in milliseconds. */
export const waitDefaults: Required<Waits> = {
  openMs: 300_000,
  replyMs: 600_000,
  stepMs: 1_800_000,
  scoreMs: 600_000,
  endMs: 30_000,
  graceMs: 10_000,
  cancelMs: 300,
}
