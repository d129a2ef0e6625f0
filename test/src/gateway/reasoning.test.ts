import type { PlayedReply, PlayRecorder } from '@tiltyard/core'
import { createGateway } from '@tiltyard/gateway'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { smallAgents, type PlainTool, type SmallAgent } from './agents.ts'
import { isUnbroken } from './attempts.ts'
import { idsSampler } from './scripted-ids.ts'

/** Thoughts before each call and before the last words. */
const script = [
  '<think>\nFirst I add.\n</think>\n\n<tool_call>\n{"name": "add", "arguments": {"b": 2,  "a": 1}}\n</tool_call><|im_end|>',
  '<think>\nOnce more.\n</think>\n\nNow again.\n<tool_call>\n{"name": "add", "arguments": {"a": 3, "b": 4}}\n</tool_call><|im_end|>',
  '<think>\nThat is all.\n</think>\n\nIt is seven.<|im_end|>',
]

const add: PlainTool = {
  name: 'add',
  description: 'Adds.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => String(Number(a) + Number(b)),
}

describe.each(Object.entries<SmallAgent>(smallAgents))('%s', (_, agent) => {
  test.each([false, true])(
    '§18.41 F56 in a tool loop of a model that thinks, prompts go on from the thoughts as sampled, whatever the client makes of them (stream: %s)',
    async (stream) => {
      const tokenizer = await loadTokenizer(deskTokenizerFile)
      const { sampler } = idsSampler(tokenizer, script)
      const replies: PlayedReply[] = []
      const record: PlayRecorder = {
        conversation: async () => {},
        observation: async () => {},
        reply: async (reply) => void replies.push(reply),
      }
      const gateway = createGateway()
      const renderer = qwenRenderer({ tokenizer, layout: 'qwen3' })
      const policy = { sampler, renderer, sampling: {} }
      const attempt = gateway.open({ rollout: 'r', policy, record })
      const model = {
        baseURL: gateway.baseURL(attempt),
        apiKey: attempt.key,
        name: 'policy',
        fetch: gateway.fetch,
      }
      const said = await agent({ model, prompt: 'go', tools: [add], stream })
      expect(said).toBe('It is seven.')
      expect(replies.map(({ restart }) => restart)).toEqual([undefined, undefined, undefined])
      expect(replies[0]!.message.reasoning).toBe('First I add.')
      expect(isUnbroken(replies)).toBe(true)
    },
  )
})
