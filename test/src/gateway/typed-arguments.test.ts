import { createGateway } from '@tiltyard/gateway'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import OpenAI from 'openai'
import { expect, test } from 'vitest'

import { idsSampler } from './scripted-ids.ts'

function parameter(name: string, value: string): string {
  return `<parameter=${name}>\n${value}\n</parameter>\n`
}

test('§18.29 arguments in an XML layout arrive with the types of the tool’s schema, and the loop goes on from the sampled ids', async () => {
  const tokenizer = await loadTokenizer(deskTokenizerFile)
  const call = `<tool_call>\n<function=find>\n${parameter('sku', '19122')}${parameter('zip', '0012')}${parameter('flag', 'true')}${parameter('count', '3')}</function>\n</tool_call>`
  const script = [`${call}<|im_end|>`, 'Found.<|im_end|>']
  const { sampler, prompts, ids: replies } = idsSampler(tokenizer, script)
  const gateway = createGateway()
  const renderer = qwenRenderer({ tokenizer, layout: 'qwen3_coder' })
  const attempt = gateway.open({ rollout: 'r', policy: { sampler, renderer, sampling: {} } })
  const client = new OpenAI({
    baseURL: gateway.baseURL(attempt),
    apiKey: attempt.key,
    fetch: gateway.fetch,
  })
  const string = { type: 'string' }
  const properties = { sku: string, zip: string, flag: string, count: { type: 'integer' } }
  const given: unknown[] = []
  const runner = client.chat.completions.runTools({
    model: 'policy',
    messages: [{ role: 'user', content: 'go' }],
    tools: [
      {
        type: 'function',
        function: {
          name: 'find',
          description: 'Finds.',
          parameters: { type: 'object', properties },
          parse: (text) => JSON.parse(text) as object,
          function(found: object) {
            given.push(found)
            return 'one'
          },
        },
      },
    ],
  })
  expect(await runner.finalContent()).toBe('Found.')
  expect(given).toEqual([{ sku: '19122', zip: '0012', flag: 'true', count: 3 }])
  const before = [...prompts[0]!, ...replies[0]!]
  expect([...prompts[1]!].slice(0, before.length)).toEqual(before)
})
