import assert from 'node:assert/strict'

import { TiltyardError } from '@tiltyard/core'

/** Largest absolute difference; NaN beside NaN is none. */
export function distance(left: ArrayLike<number>, right: ArrayLike<number>): number {
  assert.equal(left.length, right.length, 'lengths differ')
  let most = 0
  for (let index = 0; index < left.length; index += 1) {
    const [a, b] = [left[index]!, right[index]!]
    if (Number.isNaN(a) && Number.isNaN(b)) continue
    const gap = Math.abs(a - b)
    if (!(gap <= most)) most = gap
  }
  return most
}

export function near(
  left: ArrayLike<number>,
  right: ArrayLike<number>,
  tolerance: number,
  what: string,
): void {
  const gap = distance(left, right)
  assert.ok(gap <= tolerance, `${what}: largest difference ${gap}, allowed ${tolerance}`)
}

export function far(
  left: ArrayLike<number>,
  right: ArrayLike<number>,
  least: number,
  what: string,
): void {
  const gap = distance(left, right)
  assert.ok(gap > least, `${what}: largest difference ${gap}, expected more than ${least}`)
}

/** The rejection, which must carry one of the codes. */
export async function refused(
  call: () => Promise<unknown>,
  codes: readonly string[],
  what: string,
): Promise<TiltyardError> {
  const error = await call().then(
    () => undefined,
    (reason: unknown) => ({ reason }),
  )
  assert.ok(error !== undefined, `${what} was accepted`)
  const { reason } = error
  assert.ok(TiltyardError.is(reason), `${what}: rejected with ${String(reason)}, no TiltyardError`)
  assert.ok(
    codes.includes(reason.code),
    `${what}: code ${reason.code}, expected ${codes.join(' or ')} (${reason.message})`,
  )
  return reason
}
