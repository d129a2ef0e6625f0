import {
  isRunnable,
  textOf,
  type CutReason,
  type Limits,
  type PlayedCall,
  type PlayedReply,
  type PlayRecorder,
  type PolicyHandle,
  type ToolCall,
  type ToolMessage,
} from '@tiltyard/core'

import type { CallRecord, OpenRecord, ParseOutcome, SampleRecord } from './calls/record.ts'
import { createReplays, type Replays } from './calls/replays.ts'
import { createItemMemory, type ItemMemory } from './dialects/item-memory.ts'
import {
  budgetExceeded,
  contextLengthExceeded,
  overloaded,
  recordFailed,
  rolloutClosed,
  type ApiError,
} from './errors.ts'
import {
  createCallGraph,
  type CallGraph,
  type ForkCause,
  type ReasoningMode,
  type SampledReply,
} from './graph/call-graph.ts'
import type { EchoTolerance } from './graph/identity.ts'
import { createTokenGraph, type Placement, type TokenGraph } from './graph/placement.ts'
import type { AgentEnd } from './http/rollout-routes.ts'
import { attemptPath, type Tags } from './identity.ts'
import type { Lease, Policies } from './policies.ts'
import {
  createRewardBook,
  type GivenReward,
  type RecordedReward,
  type RewardBook,
} from './rewards.ts'
import { deferred } from './waiting.ts'

/** What a filter may know of a reply. */
export interface FilteredReply extends Tags {
  /** Of its call: counts up in the attempt, from 0. */
  readonly sequence: number
  readonly finish: SampleRecord['finish']
  readonly parse: ParseOutcome
  /** Whether it was cut after a stop text or its first call. */
  readonly cut: boolean
}

/** Whether a reply's tokens may be trained. Replies for the purpose `judge` never are. */
export type TrainFilter = (reply: FilteredReply) => boolean

/** What an attempt is played with. */
export interface AttemptOptions {
  /** Name of the rollout; unique among those that are open. */
  readonly rollout: string
  /** Default `0`. */
  readonly attempt?: string
  /**
   * A fixed policy, or an alias that was published: `pinned` keeps the version that the attempt began with, `latest` takes
   * for each call the version of now.
   */
  readonly policy: PolicyHandle | { readonly alias: string; readonly mode?: 'pinned' | 'latest' }
  /** Of the random choices: replies are sampled with seeds derived from it. Default: the backend chooses. */
  readonly seed?: number
  readonly limits?: Limits
  /** `override`: the policy's own sampling settings, whatever the client sends. `respect`: the client's first. Default `override`. */
  readonly sampling?: 'override' | 'respect'
  /** Gets conversation and replies; a reply is accepted by it before the client sees its end. */
  readonly record?: PlayRecorder
  /** Names that rewards may have. Default `['reward']`. */
  readonly rewards?: readonly string[]
  /** Judges never are. Default: all others. */
  readonly trains?: TrainFilter
}

/** One try at a rollout, as its owner sees it. */
export interface Attempt {
  readonly rollout: string
  readonly attempt: string
  /** Secret. Whoever holds it samples and gives rewards in this attempt's name, until it is closed. */
  readonly key: string
  /** Path under the gateway's origin for a client's base URL. */
  readonly path: string
  readonly calls: readonly CallRecord[]
  readonly rewards: RewardBook
  /** The limit that an agent ran into, if it did not go on after. */
  readonly cut: CutReason | undefined
  /** What broke inside the gateway in the newest call, if anything did: an agent that gave up then is not to blame. */
  readonly failure: ApiError | undefined
  /** What broke inside the gateway for good: all calls after it are refused, and whatever the agent makes of it counts for nothing. */
  readonly broken: ApiError | undefined
  /** Milliseconds on the gateway's clock: the last sign of life. */
  readonly lastSeen: number
  readonly closed: boolean
  reward(reward: GivenReward): RecordedReward
  /** The agent has said that it is done: no call and no reward comes after. The first time counts. */
  finish(end: AgentEnd): void
  /** What the agent said of its end, by a final reward too. */
  readonly said: AgentEnd | undefined
  /** Resolves when the agent says that it is done. */
  readonly finished: Promise<AgentEnd>
  /** The agent showed a sign of life. */
  seen(): void
  /** Ends it: the key is dead, calls under way are stopped. Idempotent; resolves when nothing is recorded any more. */
  close(): Promise<void>
}

/** The inside of an attempt, for calls. */
export interface OpenAttempt extends Attempt {
  readonly options: AttemptOptions
  readonly graph: CallGraph
  readonly tokens: TokenGraph
  readonly replays: Replays
  readonly items: ItemMemory
  /** Whether one more call may begin. @throws ApiError */
  check(): void
  /** A call begins; `stop` ends it early. */
  register(record: OpenRecord, stop: (reason: Error) => void): void
  /** @throws ApiError when a limit is reached; else how many tokens each of so many replies may have. */
  allowance(place: Placement, window: number, asked: number, replies: number): number
  /** Nothing that comes after this could be trusted: the attempt ends with it, and not by its agent's fault. */
  breakOff(error: ApiError): void
  /** Takes a reply into graph and record, in order of arrival here. */
  commit(
    place: Placement,
    reply: SampledReply,
    played: Omit<PlayedReply, 'restart'>,
  ): Promise<CommittedReply>
  /** A call is over; with what broke, if the agent is not to blame for its end. */
  settle(record: OpenRecord, trouble?: ApiError): void
  /** The policy for a call that names this model: another published alias, whose tokens are never trained, or the attempt's own. */
  takePolicy(model: string): TakenPolicy
}

/** A reply that is in graph and record. */
interface CommittedReply {
  /** Its place in the record, counted from 0. */
  readonly index: number
  readonly cause?: ForkCause
}

export interface TakenPolicy extends Lease {
  readonly alias: string
  /** Whether it is the policy that the attempt is there for. */
  readonly own: boolean
}

export interface AttemptServices {
  readonly key: string
  readonly maxConcurrent: number
  readonly tolerance: EchoTolerance
  readonly reasoning: ReasoningMode
  now(): number
  readonly policies: Policies
  closed(attempt: OpenAttempt): void
}

/** The model's name for clients. No vendor's names: some clients choose routes and fields by them. */
export const OWN_ALIAS = 'policy'

export function createAttempt(options: AttemptOptions, services: AttemptServices): OpenAttempt {
  const { rollout, attempt = '0', policy, limits = {}, record, rewards = ['reward'] } = options
  const calls: OpenRecord[] = []
  const running = new Map<OpenRecord, (reason: Error) => void>()
  const pinned =
    'sampler' in policy || policy.mode === 'latest'
      ? undefined
      : services.policies.take(policy.alias)
  const used = { replies: 0, sampled: 0 }
  /** Calls of tools that were answered, by id: a prompt that is sampled again brings the same answers again. */
  const ran = new Set<string>()
  let writing: Promise<unknown> = Promise.resolve()
  let lastRecorded: object | undefined
  let lastAt = services.now()
  let lastSeen = lastAt
  let cut: CutReason | undefined
  let failure: ApiError | undefined
  let broken: ApiError | undefined
  let closing: Promise<void> | undefined
  let said: AgentEnd | undefined
  const finished = deferred<AgentEnd>()
  const limit = (reason: CutReason, reached: boolean, value: number | undefined) => {
    if (!reached) return
    cut = reason
    throw budgetExceeded(reason, value ?? 0)
  }

  const refuseEnded = () => {
    if (said !== undefined || closing !== undefined) throw rolloutClosed()
    if (broken !== undefined) throw broken
  }

  const self: OpenAttempt = {
    options,
    rollout,
    attempt,
    key: services.key,
    path: attemptPath(rollout, attempt),
    calls,
    graph: createCallGraph(services),
    tokens: createTokenGraph(),
    replays: createReplays(),
    items: createItemMemory(),
    finished: finished.promise,
    rewards: createRewardBook({
      names: rewards,
      isCall: (id) => calls.some((call) => call.id === id),
      isAgent: (name) => calls.some((call) => call.agent === name),
      replyOf: (id) => calls.find((call) => call.id === id)?.samples[0]?.reply,
    }),
    get said() {
      return said
    },
    get cut() {
      return cut
    },
    get failure() {
      return broken ?? failure
    },
    get broken() {
      return broken
    },
    get lastSeen() {
      return running.size > 0 ? services.now() : lastSeen
    },
    get closed() {
      return said !== undefined || closing !== undefined
    },

    reward(given) {
      refuseEnded()
      self.seen()
      const reward = self.rewards.give(given)
      if (given.final === true) self.finish({ status: 'completed' })
      return reward
    },

    finish(end) {
      said ??= end
      finished.resolve(end)
      for (const stop of running.values()) stop(rolloutClosed())
    },

    check() {
      refuseEnded()
      if (running.size >= services.maxConcurrent)
        throw overloaded(`the attempt has ${running.size} calls under way; wait for one to end`)
      limit('replies', used.replies + running.size >= (limits.replies ?? Infinity), limits.replies)
    },

    register(call, stop) {
      self.seen()
      calls.push(call)
      running.set(call, stop)
    },

    breakOff(error) {
      broken ??= error
    },

    allowance(place, window, asked, replies) {
      const { prompt, conversation, next } = place
      const context = Math.min(window, limits.contextWindow ?? window)
      if (prompt.length + 1 > context) {
        cut = 'context_window'
        throw contextLengthExceeded(context, prompt.length)
      }
      // The call itself is among those under way only after this.
      const wanted = used.replies + running.size + replies
      limit('replies', wanted > (limits.replies ?? Infinity), limits.replies)
      const left = Math.floor(((limits.sampledTokens ?? Infinity) - used.sampled) / replies)
      limit('sampled_tokens', left < 1, limits.sampledTokens)
      const room = (limits.episodeTokens ?? Infinity) - prompt.length
      limit('episode_tokens', room < 1, limits.episodeTokens)
      const turns = conversation?.messages.filter(({ role }) => role === 'user').length ?? 0
      limit('turns', turns > (limits.turns ?? Infinity), limits.turns)
      const answered = next.flatMap((message) =>
        message.role === 'tool' && !ran.has(message.toolCallId) ? [message.toolCallId] : [],
      )
      const all = ran.size + answered.length
      limit('tool_calls', all > (limits.toolCalls ?? Infinity), limits.toolCalls)
      for (const id of answered) ran.add(id)
      cut = undefined
      return Math.min(asked, limits.replyTokens ?? asked, context - prompt.length, left, room)
    },

    async commit(place, reply, played) {
      refuseEnded()
      const { place: node, cause } = place.commit(reply)
      const index = used.replies
      used.replies += 1
      used.sampled += reply.ids.length
      const elapsed = services.now() - lastAt
      const write = async () => {
        if (record === undefined) return
        if (place.continues === undefined || place.continues !== lastRecorded)
          await record.conversation(
            place.conversation?.messages ?? [],
            place.conversation?.tools ?? [],
          )
        else await record.observation(place.next, playedCalls(place, elapsed))
        lastRecorded = node
        await record.reply(cause === undefined ? played : { ...played, restart: cause })
      }
      const written = writing.then(write)
      writing = written.catch(() => {})
      await written.catch((error: unknown) => {
        broken ??= recordFailed(error)
        throw broken
      })
      lastAt = services.now()
      return cause === undefined ? { index } : { index, cause }
    },

    settle(call, trouble) {
      running.delete(call)
      failure = trouble
      self.seen()
    },
    seen() {
      lastSeen = services.now()
    },

    takePolicy(model) {
      const alias = 'sampler' in policy ? OWN_ALIAS : policy.alias
      if (model !== alias && services.policies.has(model))
        return { ...services.policies.take(model), alias: model, own: false }
      if ('sampler' in policy) return { policy, alias, own: true, release() {} }
      if (pinned === undefined) return { ...services.policies.take(alias), alias, own: true }
      return { policy: pinned.policy, alias, own: true, release() {} }
    },

    close() {
      closing ??= (async () => {
        services.closed(self)
        for (const stop of running.values()) stop(rolloutClosed())
        await writing
        pinned?.release()
      })()
      return closing
    },
  }
  return self
}

/** The calls that these tool messages answer. The agent ran them: their time is the time between reply and answer. */
function playedCalls({ conversation, next }: Placement, ms: number): readonly PlayedCall[] {
  const messages = conversation?.messages ?? []
  const asked = new Map<string, ToolCall>()
  for (const message of messages)
    if (message.role === 'assistant')
      for (const call of message.toolCalls ?? []) asked.set(call.id, call)
  return next
    .filter((message): message is ToolMessage => message.role === 'tool')
    .flatMap((message) => {
      const call = asked.get(message.toolCallId)
      if (call === undefined) return []
      return [
        {
          id: call.id,
          name: call.name,
          arguments: isRunnable(call) ? call.arguments : call.rawArguments,
          result: textOf(message.content),
          ms,
        },
      ]
    })
}
