import type { EndReason } from '@tiltyard/core'

import type { TokenSequence } from './sequences.ts'

/** Numbers that every play has, 0 where nothing happened, and what they count in an episode. An Env's own numbers win over them. */
export const playMetrics = {
  replies: 'replies that were sampled',
  turns: 'user prompts of the task',
  sampled_tokens: 'tokens of all replies',
  tool_calls: 'calls that could be carried out and were handed to the environment within the limit',
  tool_errors: 'calls whose result was an error',
  eos_replies: 'replies that the model ended with its end-of-text instead of the stop token',
  malformed_replies: 'replies that could not be acted on',
  malformed_calls: 'pieces of call markup that could not be read',
  images_replaced: 'images that a placeholder stood for',
  splits:
    'token sequences beyond the first of each agent: prompts that did not go on from the tokens before them',
  cut: '1 when a limit ended the episode',
} as const

export type PlayMetric = keyof typeof playMetrics

/** All numbers about a play, those of `playMetrics` with 0 where nothing was counted. */
export function playMetricsOf(
  counts: ReadonlyMap<string, number>,
  end: EndReason,
  sequences: readonly TokenSequence[],
): Readonly<Record<string, number>> {
  const zeros = Object.fromEntries(Object.keys(playMetrics).map((name) => [name, 0]))
  const splits = sequences.filter(({ split }) => split !== undefined).length
  return { ...zeros, ...Object.fromEntries(counts), splits, cut: end.kind === 'cut' ? 1 : 0 }
}
