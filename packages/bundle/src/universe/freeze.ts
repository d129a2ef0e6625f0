import { checkScalar } from './scalar.ts'

/**
 * Freezes a JSON value in place, all of it, and calls `each` with every object and list in it.
 * @throws TypeError for what JSON has no place for.
 */
export function freezeJson(
  value: unknown,
  each: (members: object, size: number) => void = () => {},
  seen = new Set<object>(),
): void {
  checkScalar(value)
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  const members: readonly unknown[] = Object.values(value)
  each(value, members.length)
  for (const member of members) freezeJson(member, each, seen)
  Object.freeze(value)
}
