import type { CutReason, Limits } from '@tiltyard/core'

/** What an episode has used so far. */
export interface Usage {
  /** Positions of the next prompt. */
  readonly promptTokens: number
  readonly sampledTokens: number
}

/** How many tokens the next reply may have, and which limit says so; or which limit leaves no room for one. */
export type Room = { readonly tokens: number; readonly by: CutReason } | { readonly cut: CutReason }

/**
 * The tightest of the limits decides; of equals the first of: reply, episode, sampled, context window. No reply is sampled
 * when the episode, the sampled tokens or the window leave fewer than `least` tokens.
 */
export function roomFor(limits: Limits, usage: Usage, samplerWindow: number, least: number): Room {
  const { promptTokens, sampledTokens } = usage
  const window = Math.min(limits.contextWindow ?? Infinity, samplerWindow)
  const left: readonly (readonly [CutReason, number])[] = [
    ['episode_tokens', (limits.episodeTokens ?? Infinity) - promptTokens],
    ['sampled_tokens', (limits.sampledTokens ?? Infinity) - sampledTokens],
    ['context_window', window - promptTokens],
  ]
  for (const [reason, tokens] of left) if (tokens < least) return { cut: reason }
  let tightest: readonly [CutReason, number] = ['reply_tokens', limits.replyTokens ?? Infinity]
  for (const limit of left) if (limit[1] < tightest[1]) tightest = limit
  const [by, tokens] = tightest
  return { tokens, by }
}
