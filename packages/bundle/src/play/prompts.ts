import type { Content } from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import type { TurnInput } from '../task.ts'

/** What stands for an image that isn't shown. */
export const IMAGE_PLACEHOLDER = '[image content]'

/** The turn's system prompt; undefined when it brings none. */
export function systemOf(bundle: Bundle, { system }: TurnInput): string | undefined {
  if (system === undefined) return undefined
  return typeof system === 'string' ? bundle.texts.get(system) : system.text
}

/** The turn's prompt with its images, or with a text in the place of each. */
export function promptOf(
  bundle: Bundle,
  { prompt }: TurnInput,
  replace: boolean,
): { readonly content: Content; readonly replaced: number } {
  if (typeof prompt === 'string') return { content: prompt, replaced: 0 }
  let replaced = 0
  const content = prompt.map((part) => {
    if (part.type === 'text') return part
    if (!replace) return { type: 'image' as const, ...bundle.images.get(part.file)! }
    replaced += 1
    return { type: 'text' as const, text: IMAGE_PLACEHOLDER }
  })
  return { content, replaced }
}
