import assert from 'node:assert/strict'

import {
  type AssistantMessage,
  type EndReason,
  type Env,
  type EpisodeOutcome,
  isScored,
  type JsonObject,
  type Message,
  type Step,
  type StepContext,
  type ToolCall,
} from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'

export interface EnvCasesOptions {
  /** A fresh env of one task, for a seed. */
  readonly create: (seed: number) => Promise<Env>
  /** Replies that bring an episode of the task to its end. */
  readonly replies: readonly AssistantMessage[]
  /** A call that succeeds as the first of an episode. Absent: the env has no tools, and cases about calls are skipped. */
  readonly call?: { readonly name: string; readonly arguments: JsonObject }
}

const completed: EndReason = { kind: 'completed' }

/**
 * What every Env promises to whoever plays it: calls answered under their ids, mistakes of the model told and not thrown, ends
 * of every kind scored, nothing shared between two episodes. Not covered: what the tools do, and what the scores mean.
 */
export function envCases({ create, replies, call }: EnvCasesOptions): readonly ConformanceCase[] {
  const needsCall = call === undefined ? { skip: 'the env has no tools' } : {}
  const cases: readonly (Omit<ConformanceCase, 'run'> & {
    readonly play: (env: Env) => Promise<void>
  })[] = [
    {
      name: 'it shows messages that end with the user, and tools with distinct names and object parameters',
      play: async (env) => {
        const { messages, tools = [] } = await env.start(quiet())
        assert.equal(messages.at(-1)?.role, 'user')
        assert.equal(new Set(tools.map(({ name }) => name)).size, tools.length)
        for (const { name, parameters } of tools) assert.equal(parameters['type'], 'object', name)
        assert.ok(
          tools.length > 0 || call === undefined,
          'a call was given, and there are no tools',
        )
      },
    },
    {
      name: 'equal seeds show equal beginnings',
      play: async (env) => {
        const other = await create(1)
        assert.deepEqual(await env.start(quiet()), await other.start(quiet()))
        assert.equal(env.instance, other.instance)
        await finish(other, { kind: 'cancelled' })
      },
    },
    {
      name: 'the replies bring it to its end, and it gives finite scores under the end that it was told',
      play: async (env) => {
        const last = await playThrough(env, replies)
        assert.equal(last.done, true, 'the replies did not end the episode')
        await env.end(completed)
        const outcome = await env.score(quiet())
        assert.deepEqual(outcome.end, completed)
        checkNumbers(outcome)
      },
    },
    {
      name: 'scoring twice gives the same',
      play: async (env) => {
        await playThrough(env, replies)
        await env.end(completed)
        assert.deepEqual(await env.score(quiet()), await env.score(quiet()))
      },
    },
    {
      name: 'two episodes of a task share nothing: one that was played leaves the other as it was',
      play: async (env) => {
        const untouched = await create(1)
        const before = await scoreUnplayed(untouched)
        await playThrough(env, replies)
        await env.end(completed)
        await env.score(quiet())
        assert.deepEqual(await scoreUnplayed(await create(1)), before)
      },
    },
    ...(
      [
        { kind: 'cut', by: 'episode_tokens' },
        { kind: 'cut', by: 'malformed_reply' },
        { kind: 'cancelled' },
      ] satisfies EndReason[]
    ).map((reason) => ({
      name: `an episode that was ${'by' in reason ? `cut by ${reason.by}` : reason.kind} after its start is scored as it stands`,
      play: async (env: Env) => {
        await env.start(quiet())
        await env.end(reason)
        const outcome = await env.score(quiet())
        assert.deepEqual(outcome.end, reason)
        checkNumbers(outcome)
      },
    })),
    {
      name: 'it can be closed without having been started',
      play: async (env) => {
        await env.end({ kind: 'cancelled' })
      },
    },
    {
      name: 'each call is answered once, under its id, in the order of the calls',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const calls = ['first', 'second', 'third'].map((id) => ({ id, ...call! }))
        const step = await env.step(calling(calls), context())
        assert.deepEqual(answeredIds(step), ['first', 'second', 'third'])
        assert.deepEqual(
          step.calls?.map(({ id }) => id),
          ['first', 'second', 'third'],
        )
      },
    },
    {
      name: 'a good call has no error',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const step = await env.step(calling([{ id: 'a', ...call! }]), context())
        assert.equal(step.calls?.[0]?.error, undefined)
      },
    },
    {
      name: 'a tool that does not exist is told to the model under the call’s id, and the episode goes on',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const unknown = { id: 'x', name: 'no_such_tool_anywhere', arguments: {} }
        await checkMistake(env, unknown)
      },
    },
    {
      name: 'arguments that are no JSON object are not run; the error stands under the call’s id, and the episode goes on',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const error = "the arguments aren't a JSON object"
        const invalid = { id: 'x', name: call!.name, rawArguments: '[1', error }
        await checkMistake(env, invalid)
      },
    },
    {
      name: 'an argument that the tool does not have is told to the model',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const surplus = { ...call!.arguments, no_such_argument_anywhere: 'x' }
        await checkMistake(env, { id: 'x', name: call!.name, arguments: surplus })
      },
    },
    {
      name: 'calls beyond those that are left are answered and not run',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const calls = ['a', 'b'].map((id) => ({ id, ...call! }))
        const step = await env.step(calling(calls), context(1))
        assert.deepEqual(answeredIds(step), ['a', 'b'])
        assert.equal(step.calls?.[0]?.error, undefined)
        assert.notEqual(step.calls?.[1]?.error, undefined)
      },
    },
    {
      name: 'a signal that was aborted stops a step with its reason',
      ...needsCall,
      play: async (env) => {
        await env.start(quiet())
        const reason = new Error('stopped by the case')
        const aborted = { ...context(), signal: AbortSignal.abort(reason) }
        await assert.rejects(env.step(calling([{ id: 'a', ...call! }]), aborted), reason)
      },
    },
  ]
  return cases.map(({ play, ...rest }) => ({
    ...rest,
    run: async () => {
      const env = await create(1)
      try {
        await play(env)
      } finally {
        await env.close()
        await env.close()
      }
    },
  }))
}

async function checkMistake(env: Env, wrong: ToolCall): Promise<void> {
  const step = await env.step(calling([wrong]), context())
  assert.equal(step.done, false, 'the episode ended')
  assert.deepEqual(answeredIds(step), [wrong.id])
  const played = step.calls?.[0]
  assert.equal(typeof played?.error, 'string', 'the call has no error')
  const [message] = step.messages ?? []
  assert.ok(message?.role === 'tool' && message.content.length > 0, 'the model is told nothing')
}

async function playThrough(env: Env, replies: readonly AssistantMessage[]): Promise<Step> {
  await env.start(quiet())
  let step: Step = { done: false, messages: [] }
  for (const reply of replies) {
    assert.equal(step.done, false, 'the episode ended before its last reply')
    step = await env.step(reply, context())
  }
  return step
}

async function scoreUnplayed(env: Env): Promise<EpisodeOutcome> {
  await env.start(quiet())
  const reason: EndReason = { kind: 'cut', by: 'replies' }
  await env.end(reason)
  const outcome = await env.score(quiet())
  await env.close()
  return outcome
}

async function finish(env: Env, reason: EndReason): Promise<void> {
  await env.end(reason)
  await env.close()
}

function checkNumbers({ scores, metrics }: EpisodeOutcome): void {
  for (const [step, score] of Object.entries(scores))
    if (isScored(score)) assert.ok(Number.isFinite(score.value), `score ${step} is ${score.value}`)
  for (const [name, value] of Object.entries(metrics))
    assert.ok(Number.isFinite(value), `metric ${name} is ${value}`)
}

function answeredIds(step: Step): readonly string[] {
  return toolMessages(step.messages ?? []).map(({ toolCallId }) => toolCallId)
}

function toolMessages(messages: readonly Message[]) {
  return messages.filter((message) => message.role === 'tool')
}

function calling(toolCalls: readonly ToolCall[]): AssistantMessage {
  return { role: 'assistant', content: '', toolCalls }
}

function context(toolCallsLeft = 100): StepContext {
  return { signal: quiet(), toolCallsLeft }
}

function quiet(): AbortSignal {
  return new AbortController().signal
}
