import {
  agentSource,
  type AgentContext,
  type AgentFunction,
  type AgentTask,
  type Gateway,
} from '../../src/index.ts'
import { user } from './harness.ts'

/** One question of an agent. */
export async function ask(
  { model }: AgentContext,
  words = 'go',
): Promise<{ readonly status: number; readonly id: string }> {
  const response = await model.fetch(`${model.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${model.apiKey}` },
    body: JSON.stringify({ model: model.name, messages: [user(words)] }),
  })
  const { id } = (await response.json()) as { id: string }
  return { status: response.status, id }
}

export const tasks = [{ id: 'a' }, { id: 'b' }]

export function sourceOf(gateway: Gateway, agent: AgentFunction<AgentTask>, more: object = {}) {
  return agentSource({ gateway, agent, tasks, ...more })
}
