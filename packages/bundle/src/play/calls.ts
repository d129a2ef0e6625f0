import {
  asError,
  deriveSeed,
  isRunnable,
  type JsonValue,
  type Logger,
  type PlayedCall,
  type RandomStream,
  randomStream,
  type Sandbox,
  type StepContext,
  summarizeError,
  systemClock,
  TiltyardError,
  type ToolCall,
  type ToolMessage,
  unknownName,
} from '@tiltyard/core'

import { isToolError, type TaskFacts, type ToolResult } from '../author/tool.ts'
import type { Bundle, LoadedTool } from '../bundle.ts'
import type { UniverseState } from '../universe/universe.ts'
import { bounded } from './bounded.ts'
import { limitOutput } from './output-limit.ts'
import { createRedaction, type Redaction } from './redaction.ts'

/** What the calls of one episode act on. */
export interface CallScope {
  readonly bundle: Bundle
  readonly task: TaskFacts
  readonly universe: UniverseState
  readonly sandbox: Sandbox | undefined
  readonly now: number
  readonly seed: number
  readonly log: Logger
  readonly onToolError: ToolErrorHook | undefined
}

/** Told of what a tool threw that it did not mean to, for whoever mends the tool. */
export type ToolErrorHook = (error: unknown, call: { readonly tool: string }) => void

/** A call with its answer: what is recorded of it, and what the model is shown. */
interface Answer {
  readonly played: PlayedCall
  readonly message: ToolMessage
  /** Whether it could be carried out and was within the limit of calls. */
  readonly counted: boolean
}

export interface Calls {
  /** Answers each call under its id, in order. @throws when the environment fails, or the signal's reason. */
  run(
    calls: readonly ToolCall[],
    allowed: readonly string[],
    context: StepContext,
  ): Promise<readonly Answer[]>
  /** Resolves when no tool code runs any more. */
  settled(): Promise<void>
}

/** Carries out the calls of an episode. */
export function episodeCalls(scope: CallScope): Calls {
  const { bundle } = scope
  const redaction = createRedaction(bundle.secrets)
  const counts = new Map<string, number>()
  const started: Promise<unknown>[] = []
  return {
    async run(calls, allowed, context) {
      let left = context.toolCallsLeft
      const jobs = calls.map((call) => async () => {
        const began = systemClock.now()
        const outcome = await carryOut(call)
        return answer(scope, call, redacted(outcome, redaction), systemClock.now() - began)
      })
      const carryOut = async (call: ToolCall): Promise<Outcome> => {
        if (!isRunnable(call)) return { error: call.error, uncounted: true }
        const tool = allowed.includes(call.name) ? bundle.tools.get(call.name) : undefined
        if (tool === undefined) return unknownTool(bundle, call.name, allowed)
        const checked = await tool.check(call.arguments)
        if ('error' in checked) return checked
        if (left <= 0)
          return { error: 'not run: no tool calls are left in this episode', uncounted: true }
        left -= 1
        return await runTool(tool, checked.args, context)
      }
      if (sideBySide(calls)) return await Promise.all(jobs.map((job) => job()))
      const answers: Answer[] = []
      for (const job of jobs) answers.push(await job())
      return answers
    },
    async settled() {
      await Promise.allSettled(started)
    },
  }

  function sideBySide(calls: readonly ToolCall[]): boolean {
    return (
      bundle.parallelCalls &&
      calls.every(({ name }) => bundle.tools.get(name)?.definition.parallel === true)
    )
  }

  async function runTool(tool: LoadedTool, args: object, context: StepContext): Promise<Outcome> {
    const { name } = tool.spec
    const count = counts.get(name) ?? 0
    counts.set(name, count + 1)
    const { universe, release } = scope.universe.handle()
    try {
      let random: RandomStream | undefined
      const result = await bounded(
        (signal): ToolResult | Promise<ToolResult> => {
          const work = tool.definition.run(args as never, {
            universe,
            ...(scope.sandbox === undefined ? {} : { sandbox: scope.sandbox }),
            task: scope.task,
            now: scope.now,
            get random() {
              return (random ??= randomStream(deriveSeed(scope.seed, 'tool', name, count)))
            },
            secrets: bundle.secrets,
            get signal() {
              const made = signal()
              // Before the tool's own listeners hear of it: a call that is over writes nothing.
              made.addEventListener('abort', release, { once: true })
              return made
            },
            log: scope.log,
          })
          if (work instanceof Promise) started.push(work)
          return work
        },
        {
          waitingFor: `tool "${name}"`,
          milliseconds: Math.min(bundle.limits.toolMs, context.toolMs ?? Infinity),
          signal: context.signal,
        },
      )
      return { result: resultText(result) }
    } catch (thrown: unknown) {
      if (context.signal.aborted) throw asError(context.signal.reason)
      if (isToolError(thrown)) return { error: thrown.message, shown: thrown.shown }
      const error = redaction.error(thrown)
      scope.onToolError?.(error, { tool: name })
      if (tool.definition.fatal === true)
        throw new TiltyardError(
          'TOOL',
          `task "${scope.task.id}": tool "${name}" failed: ${summarizeError(error).message}`,
          { cause: error, details: { task: scope.task.id, tool: name } },
        )
      scope.log.warn('a tool threw; the model is told', {
        task: scope.task.id,
        tool: name,
        error: summarizeError(error).name,
      })
      return { error: summarizeError(error).message }
    } finally {
      release()
    }
  }
}

type Outcome =
  | { readonly result: string }
  | { readonly error: string; readonly shown?: string; readonly uncounted?: boolean }

function unknownTool(bundle: Bundle, name: string, allowed: readonly string[]): Outcome {
  const error = unknownName('tool', name, allowed)
  return bundle.unknownTool === undefined ? { error } : { error, shown: bundle.unknownTool(name) }
}

function redacted(outcome: Outcome, { text }: Redaction): Outcome {
  if ('result' in outcome) return { result: text(outcome.result) }
  const { error, shown } = outcome
  return { ...outcome, error: text(error), ...(shown === undefined ? {} : { shown: text(shown) }) }
}

function answer({ bundle }: CallScope, call: ToolCall, outcome: Outcome, ms: number): Answer {
  const result = 'error' in outcome ? (outcome.shown ?? `error: ${outcome.error}`) : outcome.result
  const args: JsonValue = isRunnable(call) ? call.arguments : call.rawArguments
  return {
    played: {
      id: call.id,
      name: call.name,
      arguments: args,
      result,
      ...('error' in outcome ? { error: outcome.error } : {}),
      ms,
    },
    message: {
      role: 'tool',
      content: limitOutput(result, bundle.limits),
      toolCallId: call.id,
      name: call.name,
    },
    counted: !('uncounted' in outcome),
  }
}

function resultText(result: ToolResult): string {
  if (result === undefined) return 'ok'
  return typeof result === 'string' ? result : JSON.stringify(result)
}
