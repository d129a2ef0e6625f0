import { ConfigError } from './errors.ts'

/** What every contract object carries: which contract, in which version, it fulfils. */
export interface Contract<Version extends string> {
  readonly specVersion: Version
}

/**
 * Refuses an object that fulfils another contract, or another version of it, by name. Call it where an adapter enters.
 * @throws ConfigError naming the role, the wanted version and what was given.
 */
export function checkContract(role: string, wanted: string, value: unknown): void {
  const found =
    typeof value === 'object' && value !== null && 'specVersion' in value
      ? String(value.specVersion)
      : undefined
  if (found === wanted) return
  const given = found === undefined ? 'an object without specVersion' : `"${found}"`
  throw new ConfigError('contract', [
    {
      at: role,
      message: `expected an object with specVersion "${wanted}", got ${given}; install versions of the packages that belong together`,
    },
  ])
}
