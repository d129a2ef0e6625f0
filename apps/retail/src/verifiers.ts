import { forUniverse } from '@tiltyard/bundle'

import type { Store } from './store.ts'

const { defineVerifier } = forUniverse<Store>()

/** Every text that must be said was said in some reply. Case and the replies' commas don't count, as in the benchmark. */
export const told = defineVerifier(({ task, replies }) => {
  const wanted = task.expect['told'] as readonly string[]
  const said = replies.map(({ content }) => content.toLowerCase().replaceAll(',', ''))
  const missing = wanted.filter((text) => !said.some((reply) => reply.includes(text.toLowerCase())))
  if (missing.length === 0) return { value: 1 }
  return { value: 0, note: `not told: ${missing.join(', ')}` }
})
