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

const zeros = Object.fromEntries(Object.keys(playMetrics).map((name) => [name, 0]))

/** Every number of `playMetrics`, at 0. */
export function noCounts(): Record<string, number> {
  return { ...zeros }
}

/** All numbers about a play; `counts` are those that were counted as it went. */
export function playMetricsOf(
  counts: Readonly<Record<string, number>>,
  end: EndReason,
  sequences: readonly TokenSequence[],
): Readonly<Record<string, number>> {
  let splits = 0
  for (const { split } of sequences) if (split !== undefined) splits += 1
  return { ...counts, splits, cut: end.kind === 'cut' ? 1 : 0 }
}
