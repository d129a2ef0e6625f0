import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenAICompatible as createOpenAICompatible1 } from '@ai-sdk/openai-compatible-1'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, OpenAIProvider, Runner } from '@openai/agents'
import type { AgentModel } from '@tiltyard/gateway'
import { scriptedSampler } from '@tiltyard/testkit'
import { streamText } from 'ai'
import * as aiSdk5 from 'ai-5'
import OpenAI from 'openai'
import { OpenAI as OpenAI5 } from 'openai-5'
import { describe, expect, test } from 'vitest'

import { openAttempt } from './attempts.ts'

interface Streamed {
  readonly text: string
  /** Tokens of the reply as the client counts them; undefined where it was told none. */
  readonly tokens: number | undefined
}

/** Streams one reply, with usage asked for or not. */
type Client = (model: AgentModel, usage: boolean) => Promise<Streamed>

const openai =
  (Library: typeof OpenAI): Client =>
  async ({ baseURL, apiKey, fetch, name }, usage) => {
    const client = new Library({ baseURL, apiKey, fetch })
    const stream = await client.chat.completions.create({
      model: name,
      messages: [{ role: 'user', content: 'go' }],
      stream: true,
      ...(usage ? { stream_options: { include_usage: true } } : {}),
    })
    let text = ''
    let tokens: number | undefined
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ''
      tokens = chunk.usage?.completion_tokens ?? tokens
    }
    return { text, tokens }
  }

const aiSdk6: Client = async ({ baseURL, apiKey, fetch, name }, includeUsage) => {
  const provider = createOpenAICompatible({
    name: 'tiltyard',
    baseURL,
    apiKey,
    fetch,
    includeUsage,
  })
  const { text, usage } = streamText({ model: provider(name), prompt: 'go' })
  return { text: await text, tokens: (await usage).outputTokens }
}

const olderAiSdk: Client = async ({ baseURL, apiKey, fetch, name }, includeUsage) => {
  const provider = createOpenAICompatible1({
    name: 'tiltyard',
    baseURL,
    apiKey,
    fetch,
    includeUsage,
  })
  const { text, usage } = aiSdk5.streamText({ model: provider(name), prompt: 'go' })
  return { text: await text, tokens: (await usage).outputTokens }
}

const langchain: Client = async ({ baseURL, apiKey, fetch, name }, streamUsage) => {
  const llm = new ChatOpenAI({
    model: name,
    apiKey,
    streamUsage,
    configuration: { baseURL, fetch },
  })
  let text = ''
  let tokens: number | undefined
  for await (const chunk of await llm.stream('go')) {
    text += chunk.text
    const told = chunk.usage_metadata as { readonly output_tokens: number } | undefined
    tokens = told?.output_tokens ?? tokens
  }
  return { text, tokens }
}

const clients: Readonly<Record<string, Client>> = {
  openai: openai(OpenAI),
  'openai 5': openai(OpenAI5 as unknown as typeof OpenAI),
  'AI SDK': aiSdk6,
  'AI SDK 5': olderAiSdk,
  LangChain: langchain,
}

describe.each(Object.entries(clients))('F51: %s', (_, client) => {
  test.each([true, false])('streams a reply whole, with usage asked for: %s', async (usage) => {
    const { model, replies } = openAttempt(scriptedSampler(['It is DONE 👋.']))
    const { text, tokens } = await client(model, usage)
    expect(text).toBe('It is DONE 👋.')
    expect(tokens).toBe(usage ? replies[0]!.sample.ids.length : undefined)
  })
})

test('F51: the Agents SDK over chat, which always asks for usage, has it', async () => {
  const { model, replies } = openAttempt(scriptedSampler(['Done.']))
  const { baseURL, apiKey, fetch } = model
  const openAIClient = new OpenAI({ baseURL, apiKey, fetch })
  const modelProvider = new OpenAIProvider({ openAIClient, useResponses: false })
  const runner = new Runner({ modelProvider, tracingDisabled: true })
  const agent = new Agent({ name: 'agent', model: model.name })
  const result = await runner.run(agent, 'go', { stream: true })
  await result.completed
  expect(result.finalOutput).toBe('Done.')
  expect(result.rawResponses[0]?.usage.outputTokens).toBe(replies[0]!.sample.ids.length)
})
