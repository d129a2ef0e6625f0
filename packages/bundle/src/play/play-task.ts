import {
  type AssistantMessage,
  type Conversation,
  type EndReason,
  type Env,
  type EpisodeOutcome,
  type Message,
  type PlayedCall,
  summarizeError,
  type ToolSpec,
} from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import { bundleEnv, type PlayOptions } from './env.ts'

/** Whoever is the model: a person at a terminal, a script, a test. Undefined: gives up, and the episode ends as cut. */
export type Player = (
  conversation: Conversation,
) => AssistantMessage | undefined | Promise<AssistantMessage | undefined>

export interface PlayTaskOptions extends PlayOptions {
  /** Of the task's instance. Default 0. */
  readonly seed?: number
  /** Most replies. Default 100. */
  readonly replies?: number
  readonly signal?: AbortSignal
}

/** A play without tokens: what was said and done, and how it was scored. */
export interface TaskPlay {
  readonly conversation: Conversation
  readonly calls: readonly PlayedCall[]
  readonly outcome: EpisodeOutcome
}

/** Plays one task with a player in the model's place, to its end and score. @throws what the environment throws. */
export async function playTask(
  bundle: Bundle,
  taskId: string,
  player: Player,
  {
    seed = 0,
    replies = 100,
    signal = new AbortController().signal,
    ...options
  }: PlayTaskOptions = {},
): Promise<TaskPlay> {
  const env = bundleEnv(bundle, bundle.tasks.get(taskId), { ...options, seed })
  let play: TaskPlay
  try {
    const { conversation, calls, reason } = await drive(env, player, replies, signal)
    await env.end(reason)
    play = { conversation, calls, outcome: await env.score(signal) }
  } catch (error) {
    await env.end({ kind: 'failed', phase: 'agent', error: summarizeError(error) })
    throw error
  } finally {
    await env.close()
  }
  return env.judge === undefined
    ? play
    : { ...play, outcome: await env.judge(play.outcome, signal) }
}

async function drive(
  env: Env,
  player: Player,
  mostReplies: number,
  signal: AbortSignal,
): Promise<Omit<TaskPlay, 'outcome'> & { readonly reason: EndReason }> {
  const first = await env.start(signal)
  const calls: PlayedCall[] = []
  let messages: readonly Message[] = first.messages
  let tools: readonly ToolSpec[] = first.tools ?? []
  const result = (reason: EndReason) => ({ conversation: { messages, tools }, calls, reason })
  for (let count = 0; count < mostReplies; count += 1) {
    const reply = await player({ messages, tools })
    if (reply === undefined) break
    const step = await env.step(reply, { signal, toolCallsLeft: Infinity })
    calls.push(...(step.calls ?? []))
    if (!step.done && step.turn?.system !== undefined)
      messages = [step.turn.system, ...messages.filter(({ role }) => role !== 'system')]
    if (!step.done) tools = step.turn?.tools ?? tools
    messages = [...messages, reply, ...(step.messages ?? [])]
    if (step.done) return result({ kind: 'completed' })
  }
  return result({ kind: 'cut', by: 'replies' })
}
