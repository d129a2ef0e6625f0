import {
  isScored,
  NotFoundError,
  StateError,
  type AssistantMessage,
  type Env,
  type EpisodeOutcome,
  type GroupPlan,
  type Observation,
  type OpenOptions,
  type RewardRule,
  type Score,
  type Step,
  type StepContext,
  type TaskRef,
  type TaskSource,
  type ToolMessage,
} from '@tiltyard/core'

export interface ScriptedEnvOptions {
  /** Default: one user message, `Go.` */
  readonly observation?: Observation
  /**
   * What follows reply n (from 0). Default: calls are answered with `ok`, a reply without a call ends the episode.
   */
  readonly step?: (
    reply: AssistantMessage,
    context: StepContext,
    index: number,
  ) => Step | Promise<Step>
  /** A number is the score of the step `score`. Called at each scoring. Default 1. */
  readonly score?: (
    env: ScriptedEnv,
    signal: AbortSignal,
  ) => number | EpisodeOutcome | Promise<number | EpisodeOutcome>
  readonly instance?: string
  /** Called at these points, after the log; what they throw is what the Env throws. */
  readonly onStart?: (signal: AbortSignal) => void | Promise<void>
  readonly onEnd?: () => void | Promise<void>
  readonly onClose?: () => void | Promise<void>
  readonly judge?: Env['judge']
}

/** An Env that does as it is told and keeps a log of what was done to it. */
export interface ScriptedEnv extends Env {
  /** `start`, `step 0`, `end completed`, `score`, `close`, in order. */
  readonly log: readonly string[]
  readonly replies: readonly AssistantMessage[]
}

export function scriptedEnv(options: ScriptedEnvOptions = {}): ScriptedEnv {
  const log: string[] = []
  const replies: AssistantMessage[] = []
  let outcome: EpisodeOutcome = { end: { kind: 'completed' }, scores: {}, metrics: {} }
  const env: ScriptedEnv = {
    specVersion: 'env/1',
    ...(options.instance === undefined ? {} : { instance: options.instance }),
    log,
    replies,
    async start(signal) {
      log.push('start')
      await options.onStart?.(signal)
      return options.observation ?? { messages: [{ role: 'user', content: 'Go.' }] }
    },
    async step(reply, context) {
      const index = replies.length
      log.push(`step ${index}`)
      replies.push(reply)
      context.signal.throwIfAborted()
      return options.step === undefined ? answerCalls(reply) : options.step(reply, context, index)
    },
    async end(reason) {
      log.push(`end ${reason.kind === 'cut' ? reason.by : reason.kind}`)
      outcome = { ...outcome, end: reason }
      await options.onEnd?.()
    },
    async score(signal) {
      log.push('score')
      const given = await (options.score?.(env, signal) ?? 1)
      if (typeof given !== 'number') return given
      const scores: Record<string, Score> = { score: { value: given } }
      return { ...outcome, scores }
    },
    async close() {
      log.push('close')
      await options.onClose?.()
    },
    ...(options.judge === undefined ? {} : { judge: options.judge }),
  }
  return env
}

/** Answers each call with `result`; without a call the episode is done. */
export function answerCalls(reply: AssistantMessage, result = 'ok'): Step {
  const calls = reply.toolCalls ?? []
  if (calls.length === 0) return { done: true }
  return {
    done: false,
    messages: calls.map(({ id, name }): ToolMessage => ({
      role: 'tool',
      toolCallId: id,
      name,
      content: result,
    })),
  }
}

export interface ScriptedSourceOptions<E extends Env> {
  /** Ids of the tasks. Default `['task']`. */
  readonly tasks?: readonly string[]
  /** The Env of play n (from 0) of all. */
  readonly open: (task: TaskRef, options: OpenOptions, index: number) => E | Promise<E>
  /** Default `['score']`. */
  readonly steps?: readonly string[]
}

/** A source of scripted tasks that keeps what it opened. */
export interface ScriptedSource<E extends Env> extends TaskSource {
  readonly opened: readonly E[]
  open(task: TaskRef, options: OpenOptions): Promise<E>
}

export function scriptedSource<E extends Env>(
  options: ScriptedSourceOptions<E>,
): ScriptedSource<E> {
  const { tasks = ['task'], steps = ['score'] } = options
  const opened: E[] = []
  let plays = 0
  let isClosed = false
  return {
    specVersion: 'task-source/1',
    name: 'scripted',
    fingerprint: `scripted:${tasks.join()}`,
    steps,
    opened,
    async *tasks(split) {
      if (split !== 'all') throw new NotFoundError(`no split "${split}"; there is all`)
      for (const id of tasks) yield scriptedTask(id)
    },
    async prepare() {},
    async open(task, openOptions) {
      if (isClosed) throw new StateError('the scripted source is closed')
      const index = plays
      plays += 1
      const env = await options.open(task, openOptions, index)
      opened.push(env)
      return env
    },
    async close() {
      isClosed = true
    },
  }
}

export function scriptedTask(id = 'task'): TaskRef {
  return { id, fingerprint: `fingerprint of ${id}` }
}

/** The reward is the score of one step; an outcome without it is unscored. */
export function stepReward(step = 'score'): RewardRule {
  return {
    specVersion: 'reward-rule/1',
    name: `step ${step}`,
    check() {},
    reward({ scores }) {
      const score = scores[step]
      if (score === undefined) return { unscored: `no score of ${step}` }
      return isScored(score) ? { reward: score.value } : score
    },
  }
}

/** A plan of `size` plays of one task; `open` gives the Env of play n, attempts counted alike. */
export function scriptedPlan<E extends Env>(
  size: number,
  open: ScriptedSourceOptions<E>['open'],
  plan: Partial<GroupPlan> = {},
): GroupPlan & { readonly source: ScriptedSource<E> } {
  const source = scriptedSource({ open })
  return { task: scriptedTask(), size, reward: stepReward(), seed: 1, ...plan, source }
}
