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
  readonly all: Int32Array
  extended: boolean
}

export function createTokenGraph(): TokenGraph {
  const replies: TokenPlace[] = []
  const prompts = new Map<number, { begun: number; sampled: number }>()
  return {
    place(ids) {
      const before = replies
        .filter(({ all }) => all.length <= ids.length && all.every((id, at) => ids[at] === id))
        .toSorted((a, b) => b.all.length - a.all.length)[0]
      const prompt =
        before === undefined
          ? tokenPrompt(ids)
          : createPrompt([tokenChunk(ids.subarray(before.prompt.length))], before.prompt)
      const hash = deriveSeed(0, 'ids', ...ids)
      const here = prompts.get(hash) ?? { begun: 0, sampled: 0 }
      const isFirst = prompts.size === 0
      prompts.set(hash, here)
      return {
        prompt,
        reused: before?.all.length ?? 0,
        hash,
        begin(samples) {
          const begun = here.begun
          here.begun += samples
          return begun
        },
        continues: before,
        next: [],
        commit(reply) {
          const all = new Int32Array(ids.length + reply.ids.length)
          all.set(promptIds(prompt))
          all.set(reply.ids, ids.length)
          const place: TokenPlace = { ...reply, all, extended: false }
          replies.push(place)
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
