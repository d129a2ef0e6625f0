/** Models that play users, reached as they really are: an endpoint served over HTTP, an AI SDK provider. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { aiSdkChat, type Chat, endpointChat } from '@tiltyard/bundle'
import { promptIds } from '@tiltyard/core'
import { createGateway, serveGateway } from '@tiltyard/gateway'
import { charRenderer, charText, scriptedSampler } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

interface Endpoint {
  readonly url: string
  readonly model: string
  readonly apiKey: string
}

const chats: Readonly<Record<string, (endpoint: Endpoint) => Chat>> = {
  endpointChat: (endpoint) => endpointChat(endpoint),
  aiSdkChat: ({ url: baseURL, model, apiKey }) =>
    aiSdkChat(createOpenAICompatible({ name: 'served', baseURL, apiKey })(model)),
}

test.each(Object.entries(chats))('%s talks with a served gateway', async (_, open) => {
  const sampler = scriptedSampler(['I want to return a lamp.'])
  const gateway = createGateway()
  const attempt = gateway.open({
    rollout: 'customer',
    policy: { sampler, renderer: charRenderer(), sampling: {} },
    record: { conversation: async () => {}, observation: async () => {}, reply: async () => {} },
  })
  const server = await serveGateway(gateway)
  try {
    const url = gateway.baseURL(attempt)
    const chat = open({ url, model: 'policy', apiKey: attempt.key })
    const reply = await chat.reply(
      [
        { role: 'system', content: 'You are a customer.' },
        { role: 'user', content: 'How can I help?' },
      ],
      { signal: new AbortController().signal },
    )
    expect(reply).toBe('I want to return a lamp.')
    expect(charText(promptIds(sampler.requests[0]!.prompt))).toContain('How can I help?')
  } finally {
    await server.close()
  }
})
