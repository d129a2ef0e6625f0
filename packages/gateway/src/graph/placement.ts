import {
  deriveSeed,
  promptIds,
  tokenPrompt,
  createPrompt,
  tokenChunk,
  type Conversation,
  type Message,
  type Renderer,
  type RenderedPrompt,
} from '@tiltyard/core'

import type { CallGraph, ForkCause, SampledReply } from './call-graph.ts'
import { createIdDigest, type IdDigest } from './id-digest.ts'

/** Where a call stands among those of its attempt, whatever its dialect. */
export interface Placement {
  readonly prompt: RenderedPrompt
  readonly reused: number
  /** Stands for all that was said before: equal conversations have equal ones. */
  readonly hash: number
  /** Counts a sample as begun; gives how many were before it under this prompt. */
  begin(samples: number): number
  /** What it goes on from, by identity; undefined: from nothing. */
  readonly continues: object | undefined
  /** What is shown to the policy; absent for raw ids. */
  readonly conversation?: Conversation
  /** The messages since the reply that it goes on from. */
  readonly next: readonly Message[]
  /** Takes the reply into the graph, as what later calls go on from. */
  commit(reply: SampledReply): { readonly place: object; readonly cause?: ForkCause }
}

export function placeConversation(
  graph: CallGraph,
  alias: string,
  renderer: Renderer,
  conversation: Conversation,
): Placement {
  const plan = graph.plan(alias, renderer, conversation)
  return {
    prompt: plan.prompt,
    reused: plan.reused,
    hash: plan.node.hash,
    begin(samples) {
      const before = plan.node.begun
      plan.node.begun += samples
      return before
    },
    continues: plan.continues,
    conversation,
    next: plan.next,
    commit(reply) {
      const { node, cause } = graph.commit(plan, reply)
      return cause === undefined ? { place: node } : { place: node, cause }
    },
  }
}

/** Calls that bring ids: each goes on from the longest reply whose tokens its prompt starts with. */
export interface TokenGraph {
  place(ids: Int32Array): Placement
}

interface TokenPlace extends SampledReply {
  extended: boolean
}

/** What a call costs here grows with its own ids, not with the replies before it: those are found by digests of prefixes. */
export function createTokenGraph(): TokenGraph {
  const replies = new Map<string, TokenPlace>()
  /** Where replies end, their prompts included. */
  const ends = new Set<number>()
  const prompts = new Map<string, { begun: number; sampled: number }>()

  const longest = (ids: Int32Array): { readonly whole: IdDigest; readonly before?: TokenPlace } => {
    const digest = createIdDigest()
    let before: TokenPlace | undefined
    for (const id of ids) {
      digest.add(id)
      if (ends.has(digest.length)) before = replies.get(digest.key()) ?? before
    }
    // A digest may deceive, training data must not.
    return before !== undefined && startsWith(ids, before)
      ? { whole: digest, before }
      : { whole: digest }
  }

  return {
    place(ids) {
      const { whole, before } = longest(ids)
      const prompt =
        before === undefined
          ? tokenPrompt(ids)
          : createPrompt([tokenChunk(ids.subarray(before.prompt.length))], before.prompt)
      const key = whole.key()
      const here = prompts.get(key) ?? { begun: 0, sampled: 0 }
      const isFirst = prompts.size === 0
      prompts.set(key, here)
      return {
        prompt,
        reused: before === undefined ? 0 : before.prompt.length + before.ids.length,
        hash: deriveSeed(0, 'ids', key),
        begin(samples) {
          const begun = here.begun
          here.begun += samples
          return begun
        },
        continues: before,
        next: [],
        commit(reply) {
          const end = whole.copy()
          for (const id of reply.ids) end.add(id)
          const place: TokenPlace = { ...reply, extended: false }
          ends.add(end.length)
          if (!replies.has(end.key())) replies.set(end.key(), place)
          here.sampled += 1
          if (here.sampled > 1) return { place, cause: 'sibling' }
          if (before === undefined)
            return isFirst ? { place } : { place, cause: 'new_conversation' }
          if (before.extended) return { place, cause: 'branch' }
          before.extended = true
          return { place }
        },
      }
    },
  }
}

function startsWith(ids: Int32Array, reply: SampledReply): boolean {
  const before = promptIds(reply.prompt)
  return (
    ids.length >= before.length + reply.ids.length &&
    before.every((id, at) => ids[at] === id) &&
    reply.ids.every((id, at) => ids[before.length + at] === id)
  )
}
