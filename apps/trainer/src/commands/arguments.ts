import { InvalidArgumentError } from 'commander'

/** Reads a number of at least 1. */
export function positiveInteger(text: string): number {
  return read(text, 1)
}

/** Reads a number of at least 0. */
export function wholeNumber(text: string): number {
  return read(text, 0)
}

function read(text: string, least: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value
  throw new InvalidArgumentError(`expected a whole number of at least ${least}, got "${text}"`)
}
