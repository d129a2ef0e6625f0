import { scriptedSampler } from '@tiltyard/testkit'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { smallAgents, type PlainTool } from './agents.ts'
import { isUnbroken, openAttempt } from './attempts.ts'

const add: PlainTool = {
  name: 'add',
  description: 'Adds.',
  parameters: z.object({ a: z.number(), b: z.number().default(7) }),
  run: ({ a, b = 7 }) => String(Number(a) + Number(b)),
}

/** Whether the client goes on when it has arguments that it can't read; the others leave that to the agent. */
const goesOn = [
  ['AI SDK, openai-compatible', false],
  ['AI SDK, openai-compatible', true],
  ['AI SDK, openai (Responses)', false],
  ['AI SDK, openai (Responses)', true],
  ['Agents SDK (Responses)', false],
  ['Agents SDK (Responses)', true],
  ['Agents SDK (chat)', false],
  ['Agents SDK (chat)', true],
  // Not streaming, it ends with no words.
  ['LangGraph on @langchain/openai', true],
] as const

test.each(goesOn)(
  '§18.30 %s sends arguments that break off back in its own way, and goes on from the sampled ids (stream: %s)',
  async (name, stream) => {
    const sampler = scriptedSampler(['⟦add {"b": 2, "a": ⟧', 'Done.'])
    const { model, replies, attempt } = openAttempt(sampler)
    const said = await smallAgents[name]({ model, prompt: 'go', tools: [add], stream })
    expect(said).toBe('Done.')
    expect(attempt.calls[0]!.samples[0]!.parse).toBe('args_invalid')
    expect(replies.map(({ restart }) => restart)).toEqual([undefined, undefined])
    expect(isUnbroken(replies)).toBe(true)
  },
)

const aiSdk = ['AI SDK, openai-compatible', 'AI SDK, openai (Responses)'] as const

test.each(aiSdk)(
  '§18.41 %s fills in defaults and drops keys that no schema has: by the ids of calls the loop goes on',
  async (name) => {
    for (const echoTolerance of ['canonical', 'ids'] as const) {
      const sampler = scriptedSampler(['⟦add {"a": 1, "note": "x"}⟧', 'Done.'])
      const { model, replies } = openAttempt(sampler, { gateway: { echoTolerance } })
      const question = { model, prompt: 'go', tools: [add], stream: false }
      expect(await smallAgents[name](question)).toBe('Done.')
      const restart = echoTolerance === 'ids' ? undefined : 'edited_args'
      expect(replies[1]!.restart).toBe(restart)
      expect(isUnbroken(replies)).toBe(restart === undefined)
    }
  },
)
