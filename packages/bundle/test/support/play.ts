import type { AssistantMessage, Env, JsonObject, StepContext, ToolCall } from '@tiltyard/core'

export const quiet = (): AbortSignal => new AbortController().signal

export function stepContext(members: Partial<StepContext> = {}): StepContext {
  return { signal: quiet(), toolCallsLeft: 100, ...members }
}

export function says(content: string): AssistantMessage {
  return { role: 'assistant', content }
}

let made = 0

export function call(name: string, args: JsonObject = {}): ToolCall {
  made += 1
  return { id: `c${made}`, name, arguments: args }
}

export function calls(...toolCalls: readonly ToolCall[]): AssistantMessage {
  return { role: 'assistant', content: '', toolCalls }
}

/** Texts of the tool messages that answer the calls. */
export async function answers(
  env: Env,
  ...toolCalls: readonly ToolCall[]
): Promise<readonly unknown[]> {
  const step = await env.step(calls(...toolCalls), stepContext())
  return (step.messages ?? []).map(({ content }) => content)
}

export async function started(env: Env): Promise<Env> {
  await env.start(quiet())
  return env
}

/** Scores of an env that is ended now. */
export async function scored(env: Env) {
  await env.end({ kind: 'completed' })
  return await env.score(quiet())
}

/** Work that never ends. */
export const never = (): Promise<never> => new Promise(() => {})
