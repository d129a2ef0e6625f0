import {
  type AssistantMessage,
  type EndReason,
  isScored,
  type Logger,
  type Message,
  type PlayedCall,
  type RandomStream,
  randomStream,
  type Sandbox,
  type Score,
  StateError,
  summarizeError,
  TiltyardError,
} from '@tiltyard/core'

import { isJudge, type Verdict, type VerifierContext } from '../author/verifier.ts'
import type { Bundle, LoadedStep } from '../bundle.ts'
import type { Chat } from '../chat/chat.ts'
import type { Task } from '../task.ts'
import type { UniverseState } from '../universe/universe.ts'
import { bounded } from './bounded.ts'
import { factsOf } from './facts.ts'
import { playGold } from './gold.ts'

/** An episode that ended, as it is scored. */
export interface EndedEpisode {
  readonly bundle: Bundle
  readonly task: Task
  readonly end: EndReason
  readonly messages: readonly Message[]
  readonly replies: readonly AssistantMessage[]
  readonly calls: readonly PlayedCall[]
  readonly universe: UniverseState
  readonly sandbox: Sandbox | undefined
  readonly seed: number
  readonly chats: Readonly<Record<string, Chat>>
  readonly log: Logger
}

/** The steps that a task records, those of judges apart from the others. */
export function stepsOf(
  bundle: Bundle,
  task: Task,
): { readonly verified: readonly LoadedStep[]; readonly judged: readonly LoadedStep[] } {
  const steps = bundle.steps.filter(({ name }) => task.steps?.includes(name) ?? true)
  return {
    verified: steps.filter(({ verifier }) => !isJudge(verifier)),
    judged: steps.filter(({ verifier }) => isJudge(verifier)),
  }
}

/**
 * Scores of the steps, each verifier in its own time limit. Scores that were given stay in `given`, so that another try runs
 * only what failed.
 * @throws TiltyardError `VERIFIER` naming task and step when a verifier fails, also for a number that isn't finite.
 */
export async function scoreSteps(
  episode: EndedEpisode,
  steps: readonly LoadedStep[],
  given: Map<string, Score>,
  signal: AbortSignal,
): Promise<Readonly<Record<string, Score>>> {
  const scores: Record<string, Score> = {}
  for (const step of steps) {
    const score = given.get(step.name) ?? (await runVerifier(episode, step, signal))
    given.set(step.name, score)
    scores[step.name] = score
  }
  return scores
}

async function runVerifier(
  episode: EndedEpisode,
  step: LoadedStep,
  signal: AbortSignal,
): Promise<Score> {
  const { bundle, task } = episode
  const verify = isJudge(step.verifier) ? step.verifier.judge : step.verifier
  try {
    const verdict = await bounded(
      (inner): Verdict | Promise<Verdict> => verify(contextOf(episode, step, inner)),
      { waitingFor: `verifier "${step.name}"`, milliseconds: bundle.limits.verifierMs, signal },
    )
    return scoreOf(verdict)
  } catch (cause) {
    signal.throwIfAborted()
    // A wrong set-up stops the run; it isn't one episode's misfortune.
    if (TiltyardError.is(cause, 'CONFIG')) throw cause
    throw new TiltyardError(
      'VERIFIER',
      `task "${task.id}": verifier of step "${step.name}" failed: ${summarizeError(cause).message}`,
      { cause, details: { task: task.id, step: step.name } },
    )
  }
}

function contextOf(
  episode: EndedEpisode,
  step: LoadedStep,
  signal: () => AbortSignal,
): VerifierContext {
  const { bundle, task, end, messages, replies, calls, universe, sandbox, seed, chats, log } =
    episode
  let random: RandomStream | undefined
  return {
    task: { ...factsOf(task), expect: task.expect ?? {} },
    options: step.options,
    end,
    messages,
    replies,
    answer: answerOf(replies),
    calls,
    universe: {
      start: universe.start,
      state: universe.state,
      changes: universe.changes(),
    },
    ...(sandbox === undefined ? {} : { sandbox }),
    gold: () => {
      if (task.gold === undefined)
        throw new StateError(`the step needs the task's gold, and the task "${task.id}" has none`)
      return playGold(bundle, task, { seed, signal: signal() })
    },
    get random() {
      return (random ??= randomStream(seed, 'verifier', step.name))
    },
    chats,
    get signal() {
      return signal()
    },
    log,
  }
}

function answerOf(replies: readonly AssistantMessage[]): string {
  const last = replies.at(-1)
  return last === undefined || (last.toolCalls?.length ?? 0) > 0 ? '' : last.content
}

/** A verifier may be of a module that no compiler saw: what is no verdict is its failure, never a zero or a missing score. */
function scoreOf(verdict: unknown): Score {
  if (typeof verdict === 'boolean') return { value: verdict ? 1 : 0 }
  const score = typeof verdict === 'number' ? { value: verdict } : verdict
  if (!looksLikeScore(score)) {
    throw new TypeError(
      `it gave ${kindOf(verdict)}; expected a number, true or false, { value } or { unscored: reason }`,
    )
  }
  if (isScored(score) && !Number.isFinite(score.value))
    throw new RangeError(`it gave ${score.value}, which is no finite number`)
  return score
}

function looksLikeScore(score: unknown): score is Score {
  if (typeof score !== 'object' || score === null) return false
  if ('value' in score) return typeof score.value === 'number'
  return 'unscored' in score && typeof score.unscored === 'string'
}

/** What it is, without its content: an error may be logged. */
function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  if (Array.isArray(value)) return 'a list'
  if (typeof value !== 'object') return `a ${typeof value}`
  return `an object with the keys ${Object.keys(value).join(', ') || '(none)'}`
}
