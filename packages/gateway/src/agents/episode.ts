import {
  ConfigError,
  summarizeError,
  TiltyardError,
  type EndReason,
  type Episode,
  type EpisodeOutcome,
  type JsonValue,
  type PlayContext,
  type PolicyHandle,
  type Score,
} from '@tiltyard/core'

import { OWN_ALIAS, type Attempt, type TrainFilter } from '../attempt.ts'
import type { Gateway } from '../gateway.ts'
import { randomId } from '../keys.ts'
import type { Agent, AgentContext, AgentModel, AgentRun, AgentTask, Verified } from './agent.ts'

/** What a verifier gives: a number, or a score that may say that there is none. */
export type AgentVerifier<Task extends AgentTask> = (
  played: Verified & { readonly task: Task },
) => number | Score | Promise<number | Score>

/** Whether an agent that failed is scored as it stands (a crash may be the policy's fault), or fails the episode. */
export type OnAgentError = 'fail' | 'score'

export interface EpisodeParts {
  readonly gateway: Gateway
  readonly agent: Agent
  readonly task: AgentTask
  readonly seed: number
  readonly rewards: readonly string[]
  readonly verifiers: Readonly<Record<string, AgentVerifier<AgentTask>>>
  readonly trains: TrainFilter | undefined
  readonly onAgentError: OnAgentError
}

/** One play of an agent: an attempt is open while it runs, its key is dead before anything is scored. */
export function agentEpisode(parts: EpisodeParts): Episode {
  const { gateway, agent, task, seed, rewards, verifiers } = parts
  const stopped = new AbortController()
  let run: AgentRun | undefined
  let output: JsonValue | undefined
  let ending: Promise<void> | undefined
  let ended: EndReason = { kind: 'cancelled' }

  const play = async (policy: PolicyHandle, context: PlayContext): Promise<EndReason> => {
    const attempt = gateway.open({
      rollout: randomId(`${labelOf(task.id)}-`),
      policy,
      seed: context.seed,
      limits: context.limits,
      record: context.record,
      rewards,
      ...(parts.trains === undefined ? {} : { trains: parts.trains }),
    })
    const signal = AbortSignal.any([context.signal, stopped.signal])
    run = { task, seed, attempt, signal, context: agentContext(gateway, attempt, seed, signal) }
    try {
      const done = await agent.run(run)
      const { said } = attempt
      output = said?.output ?? done.output
      if (said?.status === 'failed')
        throw new TiltyardError('AGENT', `the agent failed: ${said.error ?? 'it did not say why'}`)
      if (done.reward !== undefined && !attempt.rewards.hasOutcome)
        giveReward(attempt, done.reward, rewards)
      return endOf(attempt)
    } catch (error) {
      signal.throwIfAborted()
      if (attempt.failure !== undefined) throw attempt.failure
      if (attempt.cut !== undefined) return { kind: 'cut', by: attempt.cut }
      if (attempt.said?.status === 'completed') return { kind: 'completed' }
      if (parts.onAgentError === 'score') return { kind: 'completed' }
      return { kind: 'failed', phase: 'agent', error: summarizeError(error) }
    } finally {
      // What the agent left running changes nothing from here on.
      await attempt.close()
    }
  }

  return {
    specVersion: 'episode/1',
    play,
    end(reason) {
      ending ??= (async () => {
        ended = reason
        stopped.abort()
        if (run === undefined) return
        await agent.stop?.(run, reason)
      })()
      return ending
    },
    async score(signal): Promise<EpisodeOutcome> {
      const attempt = run?.attempt
      const began = run !== undefined && (agent.began?.(run) ?? true)
      const scores: Record<string, Score> = { ...attempt?.rewards.scores() }
      for (const [name, verify] of Object.entries(verifiers)) {
        if (attempt === undefined || !began) scores[name] = { unscored: 'no agent began to play' }
        else scores[name] = asScore(await verify({ task, output, end: ended, attempt, signal }))
      }
      return { end: ended, scores, metrics: attempt === undefined ? {} : playMetrics(attempt) }
    },
    async close() {
      await this.end({ kind: 'cancelled' })
    },
  }
}

/** An agent that ran into a limit, and did nothing after that, was cut by it, though it may not have noticed. */
function endOf(attempt: Attempt): EndReason {
  if (attempt.broken !== undefined) throw attempt.broken
  if (attempt.cut !== undefined) return { kind: 'cut', by: attempt.cut }
  if (attempt.failure !== undefined && attempt.calls.every(({ status }) => status !== 'ok'))
    throw attempt.failure
  return { kind: 'completed' }
}

/** The start of a task's id, whole characters only: a path will hold it. */
function labelOf(id: string): string {
  return Buffer.from(Array.from(id).slice(0, 60).join('')).toString()
}

/** NaN and the like leave it unscored, with a reason. */
function giveReward(attempt: Attempt, value: number, names: readonly string[]): void {
  if (names.length === 0)
    throw new ConfigError('agentSource', [
      {
        at: 'rewards',
        message: `the agent returned ${value}, and no reward has a name here; set rewards: ['reward'], or return { output } for the verifiers`,
      },
    ])
  const isNumber = Number.isFinite(value)
  attempt.rewards.give(
    isNumber
      ? { value }
      : { value: null, reason: `the agent returned ${value}, which is no score` },
  )
}

function asScore(given: number | Score): Score {
  if (typeof given !== 'number') return given
  if (Number.isFinite(given)) return { value: given }
  return { unscored: `the verifier gave ${given}, which is no score` }
}

function agentContext(
  gateway: Gateway,
  attempt: Attempt,
  seed: number,
  signal: AbortSignal,
): AgentContext {
  const model = (agent?: string): AgentModel => ({
    baseURL: gateway.baseURL(attempt, agent),
    apiKey: attempt.key,
    name: OWN_ALIAS,
    fetch: gateway.fetch,
  })
  return {
    model: model(),
    as: (agent) => model(agent),
    seed,
    signal,
    reward: (reward) => attempt.reward(reward),
  }
}

/** Plain numbers about a play. */
function playMetrics({ calls, rewards }: Attempt): Readonly<Record<string, number>> {
  const samples = calls.flatMap((call) => call.samples)
  const count = (holds: (sample: (typeof samples)[number]) => boolean) =>
    samples.filter(holds).length
  return {
    calls: calls.length,
    no_calls: calls.length === 0 ? 1 : 0,
    failed_calls: calls.filter(({ status }) => status === 'failed').length,
    undelivered_calls: calls.filter(({ delivered }) => !delivered).length,
    replayed_calls: calls.reduce((sum, { replayed }) => sum + replayed, 0),
    cancelled_calls: calls.filter(({ status }) => status === 'cancelled').length,
    ignored_fields: calls.reduce((sum, { ignored }) => sum + ignored.length, 0),
    clamped_calls: calls.filter(({ clamped }) => clamped).length,
    prompt_tokens: calls.reduce((sum, call) => sum + call.promptTokens, 0),
    reused_tokens: calls.reduce((sum, call) => sum + call.reusedTokens, 0),
    forks: count(({ fork }) => fork !== undefined),
    args_invalid: count(({ parse }) => parse === 'args_invalid'),
    parse_failed: count(({ parse }) => parse === 'parse_failed'),
    untrained_samples: count(({ trained }) => !trained),
    untrained_tokens: samples.reduce((sum, { trained, tokens }) => sum + (trained ? 0 : tokens), 0),
    agents: new Set(calls.map(({ agent }) => agent)).size,
    replaced_rewards: rewards.replaced,
  }
}
