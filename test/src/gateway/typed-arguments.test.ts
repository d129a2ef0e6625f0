import { promptIds, type Sampler, type Tokenizer } from '@tiltyard/core'
import { createGateway } from '@tiltyard/gateway'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import OpenAI from 'openai'
import { expect, test } from 'vitest'

/** Ids of a reply as a model samples it: markers are single ids. */
function sampled(tokenizer: Tokenizer, reply: string): Int32Array {
  const markers = [...tokenizer.markers.keys()].toSorted((a, b) => b.length - a.length)
  const escaped = markers.map((marker) => marker.replaceAll(/[|\\{}()[\]^$+*?.]/g, String.raw`\$&`))
  const parts = reply.split(new RegExp(`(${escaped.join('|')})`))
  return Int32Array.from(
    parts.flatMap((part) => {
      const id = tokenizer.markers.get(part)
      return id === undefined ? [...tokenizer.encode(part)] : [id]
    }),
  )
}

function parameter(name: string, value: string): string {
  return `<parameter=${name}>\n${value}\n</parameter>\n`
}

test('§18.29 arguments in an XML layout arrive with the types of the tool’s schema, and the loop goes on from the sampled ids', async () => {
  const tokenizer = await loadTokenizer(deskTokenizerFile)
  const call = `<tool_call>\n<function=find>\n${parameter('sku', '19122')}${parameter('zip', '0012')}${parameter('flag', 'true')}${parameter('count', '3')}</function>\n</tool_call>`
  const replies = [`${call}<|im_end|>`, 'Found.<|im_end|>'].map((reply) =>
    sampled(tokenizer, reply),
  )
  const prompts: Int32Array[] = []
  const sampler: Sampler = {
    specVersion: 'sampler/1',
    version: { id: 'scripted', step: 0 },
    contextWindow: 10_000,
    async sample({ prompt }) {
      const ids = replies[prompts.length]!
      prompts.push(promptIds(prompt))
      return [{ ids, logprobs: new Float32Array(ids.length).fill(-1), stop: 'stop' }]
    },
    logprobs: async (prompt) => new Float32Array(prompt.length),
    async close() {},
  }
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
