import type { Bundle } from '../bundle.ts'
import { placeIn } from '../load/module.ts'

/** What a tool or verifier threw, for its author: the error, and the lines of the bundle's own files on the way to it. */
export interface AuthorFailure {
  /** `TypeError: order is undefined` */
  readonly error: string
  /** `bundle.ts:31`, the innermost of the bundle's lines; absent when there is none in the stack. */
  readonly at?: string
  readonly stack: string
}

/** Looks through the error's causes for the one that comes from the bundle's code. */
export function authorFailure(bundle: Pick<Bundle, 'folder'>, error: unknown): AuthorFailure {
  const chain = causes(error)
  const own = chain.findLast((cause) => placeIn(bundle.folder, cause) !== undefined)
  const shown = own ?? chain.at(-1)
  const at = placeIn(bundle.folder, shown)
  const text = shown instanceof Error ? `${shown.name}: ${shown.message}` : String(shown)
  const stack = shown instanceof Error ? (shown.stack ?? text) : text
  return { error: text, ...(at === undefined ? {} : { at }), stack }
}

function causes(error: unknown): readonly unknown[] {
  const chain: unknown[] = []
  for (let cause = error; cause !== undefined && !chain.includes(cause);) {
    chain.push(cause)
    cause = cause instanceof Error ? cause.cause : undefined
  }
  return chain
}
