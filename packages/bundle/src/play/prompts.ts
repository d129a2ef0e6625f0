import type { Content } from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import type { TurnInput } from '../task.ts'

/** The turn's system prompt; undefined when it brings none. */
export function systemOf(bundle: Bundle, { system }: TurnInput): string | undefined {
  if (system === undefined) return undefined
  return typeof system === 'string' ? bundle.texts.get(system) : system.text
}

/** The turn's prompt, its images read. */
export function promptOf(bundle: Bundle, { prompt }: TurnInput): Content {
  if (typeof prompt === 'string') return prompt
  return prompt.map((part) =>
    part.type === 'text' ? part : { type: 'image', ...bundle.images.get(part.file)! },
  )
}
