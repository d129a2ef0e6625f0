import { unknownName, type Score } from '@tiltyard/core'

import { invalidRequest } from './errors.ts'

/** What a reward is for: the rollout, one call, the branch that ends with a call, or an agent. Never a moment in time. */
export type RewardTarget = 'rollout' | `call:${string}` | `branch:${string}` | `agent:${string}`

/** A reward as an agent, or somebody who watches it, gives it. */
export interface GivenReward {
  /** One of the source's reward names. Default: the first. */
  readonly name?: string
  /** A finite number, or null: it can't be scored, for this reason. */
  readonly value: number | null
  readonly reason?: string
  /** Default `rollout`. */
  readonly target?: RewardTarget
  /** Ends the attempt: later calls and rewards are refused. */
  readonly final?: boolean
}

/** A reward as it stands in the book. */
export interface RecordedReward {
  readonly name: string
  readonly value: number | null
  readonly reason?: string
  readonly target: RewardTarget
}

/** Rewards of one attempt by name and target: the same again changes nothing, another value takes the older one's place. */
export interface RewardBook {
  readonly rewards: readonly RecordedReward[]
  /** How often a value took another's place. */
  readonly replaced: number
  /** Whether the rollout as a whole was rewarded. */
  readonly hasOutcome: boolean
  /** @throws ApiError for an unknown name or target, or a value that is no finite number. */
  give(reward: GivenReward): RecordedReward
  /** By name: the reward for the rollout, else the sum of those for its calls, branches and agents; a name without any is unscored. */
  scores(): Readonly<Record<string, Score>>
}

export interface RewardNames {
  readonly names: readonly string[]
  readonly isCall: (id: string) => boolean
  readonly isAgent: (name: string) => boolean
  /** The first reply of a call in the record, counted from 0. */
  readonly replyOf: (id: string) => number | undefined
}

export function createRewardBook({ names, isCall, isAgent, replyOf }: RewardNames): RewardBook {
  const book = new Map<string, RecordedReward>()
  let replaced = 0
  return {
    get rewards() {
      return [...book.values()]
    },
    get replaced() {
      return replaced
    },
    get hasOutcome() {
      return [...book.values()].some(({ target }) => target === 'rollout')
    },

    give({ name = names[0] ?? '', value, reason, target = 'rollout' }) {
      if (!names.includes(name)) throw invalidRequest(unknownName('reward', name, names), 'name')
      if (value !== null && !Number.isFinite(value))
        throw invalidRequest(
          'value must be a finite number, or null for "can’t be scored"',
          'value',
        )
      checkTarget(target, isCall, isAgent)
      const key = `${name}\u0000${target}`
      const known = book.get(key)
      if (known !== undefined && known.value === value) return known
      if (known !== undefined) replaced += 1
      const given = { name, value, target, ...(reason === undefined ? {} : { reason }) }
      book.set(key, given)
      return given
    },

    scores: () =>
      Object.fromEntries(
        names.map((name): [string, Score] => {
          const own = [...book.values()].filter((reward) => reward.name === name)
          const whole = own.find(({ target }) => target === 'rollout')
          return [name, whole === undefined ? sumOf(own, replyOf) : scoreOf(whole)]
        }),
      ),
  }
}

function scoreOf({ value, reason }: RecordedReward): Score {
  if (value === null) return { unscored: reason ?? 'said to be unscorable' }
  return reason === undefined ? { value } : { value, note: reason }
}

/** Rewards for parts as one for the whole; what each was for goes into the note. */
function sumOf(parts: readonly RecordedReward[], replyOf: RewardNames['replyOf']): Score {
  if (parts.length === 0) return { unscored: 'no reward was given' }
  const named = ({ target }: RecordedReward) => {
    const [kind, id] = [target.slice(0, target.indexOf(':')), target.slice(target.indexOf(':') + 1)]
    if (kind === 'agent') return `agent ${id}`
    const place = kind === 'branch' ? 'the branch to reply' : 'reply'
    return `${place} ${replyOf(id) ?? 'that was not sampled'}`
  }
  const unscorable = parts.find(({ value }) => value === null)
  if (unscorable !== undefined)
    return { unscored: `${named(unscorable)}: ${unscorable.reason ?? 'said to be unscorable'}` }
  const value = parts.reduce((sum, part) => sum + part.value!, 0)
  if (!Number.isFinite(value)) return { unscored: `the rewards add up to ${value}` }
  const shown = parts.slice(0, MAX_SHOWN).map((part) => `${part.value} for ${named(part)}`)
  const more = parts.length > MAX_SHOWN ? `, and ${parts.length - MAX_SHOWN} more` : ''
  return { value, note: `sum of ${shown.join(', ')}${more}` }
}

const MAX_SHOWN = 100

function checkTarget(
  target: string,
  isCall: (id: string) => boolean,
  isAgent: (name: string) => boolean,
): void {
  if (target === 'rollout') return
  const [, kind, name] = /^(call|branch|agent):(.+)$/s.exec(target) ?? []
  if (kind === undefined || name === undefined)
    throw invalidRequest('target must be rollout, call:<id>, branch:<id> or agent:<name>', 'target')
  if (kind === 'agent' ? isAgent(name) : isCall(name)) return
  throw invalidRequest(
    `the attempt has no ${kind === 'agent' ? 'agent' : 'call'} of this name`,
    'target',
  )
}
