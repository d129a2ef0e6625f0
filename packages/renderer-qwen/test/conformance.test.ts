import type { Tokenizer } from '@tiltyard/core'
import { registerCases, rendererCases } from '@tiltyard/testkit'
import { describe, test } from 'vitest'

import { layoutNames, qwenRenderer, type QwenRendererOptions } from '../src/index.ts'
import { layouts } from '../src/layouts/table.ts'
import { tokenizer } from './support.ts'

type Variant = Omit<QwenRendererOptions, 'tokenizer'>

const variants: readonly Variant[] = layoutNames.flatMap((layout) => {
  const { thinking, preserveThinking } = layouts[layout]
  const plain: Variant[] = [{ layout }]
  if (thinking === 'optional') plain.push({ layout, thinking: false }, { layout, history: 'keep' })
  if (preserveThinking !== undefined) plain.push({ layout, preserveThinking: !preserveThinking })
  return plain
})

describe.each(variants.map((options) => ({ name: JSON.stringify(options), options })))(
  '$name',
  ({ options }) => {
    const create = (given: Tokenizer) => qwenRenderer({ ...options, tokenizer: given })
    registerCases(test, rendererCases({ create, tokenizer }))
  },
)
