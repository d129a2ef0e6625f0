import {
  type AssistantMessage,
  DeadlineError,
  type EndReason,
  type Env,
  type EpisodeOutcome,
  isRunnable,
  type JsonObject,
  type Message,
  type PlayedCall,
  randomStream,
  type Score,
  StateError,
  type Step,
  type StepContext,
  systemClock,
  type ToolCall,
  type ToolMessage,
  type ToolSpec,
  TiltyardError,
  type UserMessage,
} from '@tiltyard/core'

import type { Observed } from '../wire/frames.ts'
import { isJsonObject } from '../wire/json.ts'
import { END_TURN } from '../wire/tools.ts'
import { CapacityReached, connect, type Connection } from './connection.ts'
import { type CheckedSourceOptions, type OpenEnvTask, REWARD_STEP, routeOf } from './options.ts'
import { actionTool, promptsOf, resultText, toolsOf, withSystem } from './reading.ts'
import type { ServerFacts } from './server-facts.ts'

/** Pauses between two tries for a session, in milliseconds: doubled from the first to the longest. */
const PAUSES_MS = { first: 250, longest: 5_000 }

export interface OpenEnvPlay {
  readonly options: CheckedSourceOptions
  readonly facts: ServerFacts
  readonly task: OpenEnvTask
  readonly seed: number
}

/** One episode of a server's environment, over a connection of its own. */
export function openenvEnv({ options, facts, task, seed }: OpenEnvPlay): Env {
  const { clock, logger, url } = options
  let connection: Connection | undefined
  let tools: readonly ToolSpec[] = []
  let endsTurns = false
  let ended: EndReason | undefined
  let isDone = false
  const rewards: number[] = []
  let scores: JsonObject = {}
  const counts = { messages: 0, tool_calls: 0, tool_errors: 0 }

  const note = (observed: Observed) => {
    if (observed.reward !== null) rewards.push(observed.reward)
    const told = observed.metadata?.['scores']
    if (isJsonObject(told)) scores = { ...scores, ...told }
    isDone ||= observed.done
    return observed
  }

  const ask = async (what: string, frame: JsonObject, signal: AbortSignal) => {
    if (connection === undefined || ended !== undefined)
      throw new StateError('a reply is taken between start and end only')
    return note(await connection.ask(what, frame, signal))
  }

  const act = (what: string, action: JsonObject, signal: AbortSignal) =>
    ask(what, { type: 'step', data: action }, signal)

  /** Connects and resets. A server without a free session is asked again, later and later, never in a spin. */
  const begin = async (signal: AbortSignal): Promise<Observed> => {
    const random = randomStream(seed, 'openenv', task.id)
    const until = clock.now() + options.capacityMs
    for (let pause = PAUSES_MS.first; ; pause = Math.min(2 * pause, PAUSES_MS.longest)) {
      const made = await connect({ ...options, url: routeOf(url, 'ws', '/ws'), signal })
      try {
        const data = { seed, ...task.reset }
        const observed = await made.ask('the first observation', { type: 'reset', data }, signal)
        connection = made
        return note(observed)
      } catch (error) {
        made.close()
        if (!(error instanceof CapacityReached)) throw error
        if (clock.now() >= until)
          throw new DeadlineError(`a free session of ${url.host}`, options.capacityMs, {
            cause: error,
          })
        logger.info('the environment server is at capacity; waiting', { host: url.host, ms: pause })
        await clock.sleep(pause * (0.5 + random.next() / 2), signal)
      }
    }
  }

  const runCall = async (
    call: ToolCall,
    context: StepContext,
  ): Promise<{
    readonly text: string
    readonly error?: string
    readonly prompts: UserMessage[]
  }> => {
    const refused = (error: string) => ({ text: `error: ${error}`, error, prompts: [] })
    if (!isRunnable(call)) return refused(call.error)
    if (isDone) return refused('not run: the episode is over')
    const action =
      facts.mode === 'action'
        ? call.name === options.actionTool && call.arguments
        : { type: 'call_tool', tool_name: call.name, arguments: call.arguments }
    if (action === false)
      return refused(`there is no tool "${call.name}"; there is ${options.actionTool}`)
    try {
      const { observation } = await act(`tool "${call.name}"`, action, context.signal)
      const { text, error } =
        facts.mode === 'action' ? { text: resultText(observation) } : readResult(observation)
      return error === undefined
        ? { text, prompts: promptsOf(observation) }
        : { ...refused(error), prompts: promptsOf(observation) }
    } catch (error) {
      // An action that doesn't fit the schema is the policy's mistake, and the environment is as it was.
      if (TiltyardError.is(error, 'OPENENV') && error.details['code'] === 'VALIDATION_ERROR')
        return refused('the arguments don’t fit the action’s schema')
      throw error
    }
  }

  const nextTurn = async (reply: AssistantMessage, signal: AbortSignal): Promise<Step> => {
    if (!endsTurns) return { done: true }
    const { observation } = await act(
      'the end of a turn',
      { type: 'end_turn', text: reply.content },
      signal,
    )
    const messages = promptsOf(observation)
    counts.messages += messages.length
    if (isDone) return { done: true, messages }
    const changed = toolsOf(observation)
    tools = changed ?? tools
    const head = withSystem(observation)
    return {
      done: false,
      messages,
      turn: {
        ...(head === undefined ? {} : { system: head }),
        ...(changed === undefined ? {} : { tools }),
      },
    }
  }

  return {
    specVersion: 'env/1',
    instance: `${task.id}:${seed}`,
    async start(signal) {
      if (connection !== undefined) throw new StateError('an env is started once')
      const { observation } = await begin(signal)
      if (facts.mode === 'action') tools = [actionTool(options.actionTool, facts.action)]
      else {
        const answer = await act('the list of tools', { type: 'list_tools' }, signal)
        const listed = toolsOf(answer.observation) ?? []
        endsTurns = listed.some(({ name }) => name === END_TURN)
        tools = toolsOf(observation) ?? listed.filter(({ name }) => name !== END_TURN)
      }
      const messages = options.prompt?.(observation, task) ?? firstMessages(observation)
      counts.messages += messages.length
      return { messages, tools }
    },
    async step(reply, context) {
      counts.messages += 1
      const { toolCalls = [] } = reply
      if (toolCalls.length === 0) return await nextTurn(reply, context.signal)
      const messages: (ToolMessage | UserMessage)[] = []
      const calls: PlayedCall[] = []
      const prompts: UserMessage[] = []
      for (const call of toolCalls) {
        const began = systemClock.now()
        const isOver = calls.length >= context.toolCallsLeft
        const outOfCalls = 'not run: no tool calls are left in this episode'
        const answer = isOver
          ? { text: `error: ${outOfCalls}`, error: outOfCalls, prompts: [] }
          : await runCall(call, context)
        prompts.push(...answer.prompts)
        if (answer.error === undefined) counts.tool_calls += 1
        else counts.tool_errors += 1
        messages.push({
          role: 'tool',
          content: answer.text,
          toolCallId: call.id,
          name: call.name,
        })
        calls.push({
          id: call.id,
          name: call.name,
          arguments: isRunnable(call) ? call.arguments : call.rawArguments,
          result: answer.text,
          ...(answer.error === undefined ? {} : { error: answer.error }),
          ms: systemClock.now() - began,
        })
      }
      messages.push(...prompts)
      counts.messages += messages.length
      return { done: isDone, messages, calls }
    },
    end(reason) {
      ended ??= reason
      connection?.close()
      return Promise.resolve()
    },
    score: () => Promise.resolve(outcome()),
    close() {
      connection?.close()
      return Promise.resolve()
    },
  }

  function firstMessages(observation: JsonObject): readonly Message[] {
    const head = withSystem(observation)
    const prompts = promptsOf(observation)
    const shown =
      prompts.length > 0 ? prompts : [{ role: 'user' as const, content: resultText(observation) }]
    return head === undefined ? shown : [head, ...shown]
  }

  function outcome(): EpisodeOutcome {
    if (ended === undefined) throw new StateError('an episode is scored after its end')
    const given = options.steps.map((step): [string, Score] => {
      const value = step === REWARD_STEP ? rewardOf(rewards, options.reward) : scores[step]
      return typeof value === 'number' && Number.isFinite(value)
        ? [step, { value }]
        : [
            step,
            {
              unscored: `the server gave no ${step === REWARD_STEP ? 'reward' : `score "${step}"`}`,
            },
          ]
    })
    return {
      end: ended,
      scores: Object.fromEntries(given),
      metrics: { ...counts, cut: ended.kind === 'cut' ? 1 : 0 },
    }
  }
}

function rewardOf(rewards: readonly number[], rule: 'last' | 'sum'): number | undefined {
  return rule === 'last' || rewards.length === 0
    ? rewards.at(-1)
    : rewards.reduce((sum, reward) => sum + reward, 0)
}

function readResult(observation: JsonObject): { readonly text: string; readonly error?: string } {
  const { error } = observation
  if (isJsonObject(error)) {
    const { message } = error
    return { text: '', error: typeof message === 'string' ? message : JSON.stringify(error) }
  }
  return { text: resultText(observation['result'] ?? observation) }
}
