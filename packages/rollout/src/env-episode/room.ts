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
  const ofReply = limits.replyTokens ?? Infinity
  const ofEpisode = (limits.episodeTokens ?? Infinity) - promptTokens
  const ofSampled = (limits.sampledTokens ?? Infinity) - sampledTokens
  const ofWindow = window - promptTokens
  if (ofEpisode < least) return { cut: 'episode_tokens' }
  if (ofSampled < least) return { cut: 'sampled_tokens' }
  if (ofWindow < least) return { cut: 'context_window' }
  const tokens = Math.min(ofReply, ofEpisode, ofSampled, ofWindow)
  if (tokens === ofReply) return { tokens, by: 'reply_tokens' }
  if (tokens === ofEpisode) return { tokens, by: 'episode_tokens' }
  if (tokens === ofSampled) return { tokens, by: 'sampled_tokens' }
  return { tokens, by: 'context_window' }
}
