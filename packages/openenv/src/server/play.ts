import { randomUUID } from 'node:crypto'

import {
  asError,
  type AssistantMessage,
  type EndReason,
  endName,
  type Env,
  type EpisodeOutcome,
  isRewarded,
  isScored,
  type JsonObject,
  type JsonValue,
  type Message,
  StateError,
  type Step,
  summarizeError,
  type TaskRef,
  textOf,
  TiltyardError,
  type ToolSpec,
  UnsupportedError,
} from '@tiltyard/core'

import type { Observed, ResetRequest } from '../wire/frames.ts'
import { toolAction } from '../wire/tools.ts'
import type { CheckedServerOptions } from './options.ts'
import type { TaskTable } from './tasks.ts'

/** Plays one episode after another for one client. Calls come one at a time. */
export interface Play {
  /** Begins an episode; one that is live ends as cancelled. */
  reset(request: ResetRequest, signal: AbortSignal): Promise<Observed>
  /** One reply with this one call. */
  callTool(name: string, args: JsonObject, signal: AbortSignal): Promise<Observed>
  /** One reply without a call: the turn ends, and after the last one the episode is scored. */
  endTurn(text: string, signal: AbortSignal): Promise<Observed>
  /** What the policy may call now; before an episode, what it may call in the first task. */
  tools(signal: AbortSignal): Promise<readonly ToolSpec[]>
  state(): JsonObject
  /** Ends what is live. */
  close(reason?: EndReason): Promise<void>
}

export interface PlayParts {
  readonly options: CheckedServerOptions
  readonly tasks: TaskTable
  /** Prepares the source, the first time. */
  readonly prepare: (signal: AbortSignal) => Promise<void>
}

interface Live {
  readonly id: string
  readonly task: TaskRef
  readonly env: Env
  tools: readonly ToolSpec[]
  turn: number
  steps: number
  calls: number
  done: boolean
}

export function createPlay({ options, tasks, prepare }: PlayParts): Play {
  const { source, reward, limits, logger } = options
  let live: Live | undefined

  const open = async (request: ResetRequest, signal: AbortSignal) => {
    await prepare(signal)
    const { task, seed } = await tasks.choose(request)
    const env = await source.open(task, { seed, signal })
    if (env.specVersion === 'env/1') return { task, env }
    await env.close()
    throw new UnsupportedError(`task "${task.id}" brings its own agent; OpenEnv plays Envs only`)
  }

  /** Whatever goes wrong in an environment ends its episode as failed; the client is told why. */
  const guarded = async <T>(
    phase: 'start' | 'tool' | 'score',
    it: Live,
    work: () => Promise<T>,
  ): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      await leave(it, { kind: 'failed', phase, error: summarizeError(error) })
      throw asError(error)
    }
  }

  const leave = async (it: Live, reason: EndReason) => {
    if (it.done) return
    it.done = true
    try {
      await it.env.end(reason)
      await it.env.close()
    } catch (error) {
      logger.warn('an episode was left with an error', {
        task: it.task.id,
        error: summarizeError(error).name,
      })
    }
  }

  const playing = (): Live => {
    if (live === undefined) throw new StateError('no episode is under way; reset begins one')
    if (live.done) throw new StateError('the episode is over; reset begins another')
    return live
  }

  const stepWith = async (it: Live, reply: AssistantMessage, signal: AbortSignal) => {
    const { toolCalls = Infinity, toolMs } = limits
    const context = {
      signal,
      toolCallsLeft: toolCalls - it.calls,
      ...(toolMs === undefined ? {} : { toolMs }),
    }
    const step = await guarded('tool', it, () => it.env.step(reply, context))
    it.steps += 1
    if (!step.done && step.turn !== undefined) {
      it.turn += 1
      it.tools = step.turn.tools ?? it.tools
    }
    return step
  }

  const finish = async (
    it: Live,
    reason: EndReason,
    observation: JsonObject,
    signal: AbortSignal,
  ): Promise<Observed> =>
    await guarded('score', it, async () => {
      const { env, task } = it
      await env.end(reason)
      const scored = await env.score(signal)
      const outcome = env.judge === undefined ? scored : await env.judge(scored, signal)
      it.done = true
      await env.close()
      const result = reward.reward(outcome)
      if (!isRewarded(result))
        throw new TiltyardError('UNSCORED', `unscored: ${result.unscored}`, {
          details: { task: task.id },
        })
      return { observation, reward: result.reward, done: true, metadata: factsOf(outcome) }
    })

  return {
    async reset(request, signal) {
      if (live !== undefined) await leave(live, { kind: 'cancelled' })
      live = undefined
      const { task, env } = await open(request, signal)
      const id = request.episode_id ?? randomUUID()
      const it: Live = { id, task, env, tools: [], turn: 0, steps: 0, calls: 0, done: false }
      live = it
      const { messages, tools = [] } = await guarded('start', it, () => env.start(signal))
      it.tools = tools
      return {
        observation: {
          messages: messages.map(shown),
          tools: tools.map(toolShown),
          task_id: task.id,
          turn: 0,
        },
        reward: null,
        done: false,
      }
    },
    async callTool(name, args, signal) {
      const it = playing()
      if (it.calls >= (limits.toolCalls ?? Infinity)) {
        const message = 'not run: no tool calls are left in this episode'
        const observation = toolAction(name, { error: 'execution_error', message })
        return await finish(it, { kind: 'cut', by: 'tool_calls' }, observation, signal)
      }
      const id = `call-${it.calls}`
      it.calls += 1
      const isKnown = it.tools.some((tool) => tool.name === name)
      const step = await stepWith(
        it,
        { role: 'assistant', content: '', toolCalls: [{ id, name, arguments: args }] },
        signal,
      )
      const prompts = (step.messages ?? []).filter(({ role }) => role === 'user').map(shown)
      const observation = {
        ...toolAction(name, answerOf(step, id, isKnown)),
        ...(prompts.length === 0 ? {} : { messages: prompts, turn: it.turn }),
      }
      if (step.done) return await finish(it, { kind: 'completed' }, observation, signal)
      return { observation, reward: null, done: false }
    },
    async endTurn(text, signal) {
      const it = playing()
      const step = await stepWith(it, { role: 'assistant', content: text }, signal)
      const messages = [
        ...(!step.done && step.turn?.system !== undefined ? [step.turn.system] : []),
        ...(step.messages ?? []),
      ].map(shown)
      const place = { task_id: it.task.id, turn: it.turn }
      if (step.done) return await finish(it, { kind: 'completed' }, { messages, ...place }, signal)
      const tools = step.turn?.tools === undefined ? {} : { tools: step.turn.tools.map(toolShown) }
      return { observation: { messages, ...tools, ...place }, reward: null, done: false }
    },
    async tools(signal) {
      if (live !== undefined && !live.done) return live.tools
      const { env } = await open({ index: 0, seed: 0 }, signal)
      try {
        const { tools = [] } = await env.start(signal)
        return tools
      } finally {
        await env.end({ kind: 'cancelled' })
        await env.close()
      }
    },
    state: () => ({
      episode_id: live?.id ?? null,
      step_count: live?.steps ?? 0,
      task_id: live?.task.id ?? null,
      turn: live?.turn ?? 0,
      done: live?.done ?? false,
    }),
    async close(reason = { kind: 'cancelled' }) {
      if (live !== undefined) await leave(live, reason)
    },
  }
}

/** Scores by their steps' names, numbers of the play, and how it ended. */
function factsOf({ scores, metrics, end }: EpisodeOutcome): JsonObject {
  const entries = Object.entries(scores)
  const given = entries.flatMap(([name, score]) => (isScored(score) ? [[name, score.value]] : []))
  const missing = entries.flatMap(([name, score]) =>
    isScored(score) ? [] : [[name, score.unscored]],
  )
  return {
    scores: Object.fromEntries(given) as JsonObject,
    ...(missing.length === 0 ? {} : { unscored: Object.fromEntries(missing) as JsonObject }),
    metrics,
    end: endName(end),
  }
}

function answerOf(step: Step, id: string, isKnown: boolean): Parameters<typeof toolAction>[1] {
  const error = step.calls?.find((call) => call.id === id)?.error
  const message = step.messages?.find((each) => each.role === 'tool' && each.toolCallId === id)
  if (error !== undefined)
    return { error: isKnown ? 'execution_error' : 'tool_not_found', message: error }
  return { text: message === undefined ? '' : textOf(message.content, '[image content]') }
}

function shown(message: Message): JsonValue {
  return { role: message.role, content: textOf(message.content, '[image content]') }
}

function toolShown({ name, description, parameters }: ToolSpec): JsonValue {
  return { name, ...(description === undefined ? {} : { description }), parameters }
}
