import type { Segment, TemplateWriter } from '@tiltyard/core/rendering'

import type { Layout } from '../layouts/layout.ts'

export type ReasoningEffort = 'xhigh' | 'medium' | 'low'

/** A layout with its options settled: all that the template functions ask. */
export interface Scene {
  readonly layout: Layout
  readonly write: TemplateWriter
  readonly thinking: boolean
  readonly preserveThinking: boolean
  readonly reasoningEffort: ReasoningEffort
  readonly bareTools: boolean
  readonly addVisionId: boolean
  /** Positions that an image takes. */
  readonly imageTokens: (width: number, height: number) => number
}

export type Segments = readonly Segment[]
