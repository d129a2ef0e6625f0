import { checkOptions, type Tokenizer } from '@tiltyard/core'
import { z } from 'zod'

import { layoutNames, type LayoutName } from './layouts/layout.ts'

export interface QwenRendererOptions {
  /** The model's own tokenizer: its markers are looked up by name. */
  readonly tokenizer: Tokenizer
  readonly layout: LayoutName
  /** Whether replies think. Default: on, where the layout leaves the choice. */
  readonly thinking?: boolean
  /** Keep the think blocks of earlier turns (3.6: default off, 3.8: default on). */
  readonly preserveThinking?: boolean
  /** 3.8 only. Default `xhigh`. */
  readonly reasoningEffort?: 'xhigh' | 'medium' | 'low'
  /** Write `Picture N: ` before each image. Default off. */
  readonly addVisionId?: boolean
  /** `wrapped` prints tools as OpenAI-compatible servers get them, `bare` without their wrapper. Default `wrapped`. */
  readonly tools?: 'wrapped' | 'bare'
  /**
   * What `extend` does where the template would take think blocks out of the history: `template` refuses, so that a new datum
   * starts as the template writes it; `keep` goes on in one sequence, off the template. Default `template`.
   */
  readonly history?: 'template' | 'keep'
  /**
   * `safe`: only the template writes markers. `naive`: text that spells a marker becomes one, as in servers that encode the whole
   * prompt at once; only for comparing with those. Default `safe`.
   */
  readonly markers?: 'safe' | 'naive'
  /** Positions of an image of so many pixels. Default: Qwen3-VL's rule, patches of 16, merged 2 by 2. */
  readonly imageTokens?: (width: number, height: number) => number
}

const schema = z.strictObject({
  tokenizer: z.custom<Tokenizer>(isTokenizer, 'expected a Tokenizer, such as loadTokenizer gives'),
  layout: z.enum(layoutNames),
  thinking: z.boolean().optional(),
  preserveThinking: z.boolean().optional(),
  reasoningEffort: z.enum(['xhigh', 'medium', 'low']).optional(),
  addVisionId: z.boolean().optional(),
  tools: z.enum(['wrapped', 'bare']).optional(),
  history: z.enum(['template', 'keep']).optional(),
  markers: z.enum(['safe', 'naive']).optional(),
  imageTokens: z.custom<(width: number, height: number) => number>(isFunction).optional(),
})

/** @throws ConfigError with every mistake. */
export function checkQwenOptions(options: QwenRendererOptions): QwenRendererOptions {
  checkOptions('qwenRenderer', schema, options)
  return options
}

function isTokenizer(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    'specVersion' in value &&
    value.specVersion === 'tokenizer/1'
  )
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}
