import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenAICompatible as createOpenAICompatible1 } from '@ai-sdk/openai-compatible-1'
import { tool as langchainTool } from '@langchain/core/tools'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, OpenAIProvider, Runner, tool as agentsTool } from '@openai/agents'
import type { AgentModel } from '@tiltyard/gateway'
import * as aiSdk6 from 'ai'
import * as aiSdk5 from 'ai-5'
import OpenAI from 'openai'
import { OpenAI as OpenAI5 } from 'openai-5'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { z } from 'zod'

/** A tool as all these libraries can have it. */
export interface PlainTool {
  readonly name: string
  readonly description: string
  readonly parameters: z.ZodObject
  readonly run: (given: Record<string, unknown>) => string
}

interface Question {
  readonly model: AgentModel
  readonly prompt: string
  readonly tools: readonly PlainTool[]
  readonly stream: boolean
  readonly signal?: AbortSignal
  /** Told of each piece of text that streams. */
  readonly onText?: (text: string) => void
}

/** An agent of a few lines: asks, runs the tools that the model calls, and gives its last words. */
export type SmallAgent = (question: Question) => Promise<string>

/** The official client, of this major or a later one, with a loop by hand. */
export const openaiAgent =
  (Client: typeof OpenAI): SmallAgent =>
  async ({ model, prompt, tools, stream, signal, onText }) => {
    const client = new Client({ baseURL: model.baseURL, apiKey: model.apiKey, fetch: model.fetch })
    const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: prompt }]
    const request = {
      model: model.name,
      messages,
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function' as const,
        function: { name, description, parameters: z.toJSONSchema(parameters) },
      })),
    }
    for (;;) {
      const options = signal === undefined ? {} : { signal }
      const running = stream ? client.chat.completions.stream(request, options) : undefined
      if (onText !== undefined) running?.on('content', onText)
      const completion =
        (await running?.finalChatCompletion()) ??
        (await client.chat.completions.create(request, options))
      const { message } = completion.choices[0]!
      messages.push(message)
      const calls = message.tool_calls ?? []
      if (calls.length === 0) return message.content ?? ''
      for (const call of calls) {
        if (call.type !== 'function') continue
        const wanted = tools.find(({ name }) => name === call.function.name)!
        const content = wanted.run(JSON.parse(call.function.arguments) as Record<string, unknown>)
        messages.push({ role: 'tool', tool_call_id: call.id, content })
      }
    }
  }

async function aiSdk(
  model: aiSdk6.LanguageModel,
  question: Question,
  { generateText, stepCountIs, streamText, tool } = aiSdk6,
): Promise<string> {
  const { prompt, stream, signal, onText } = question
  const tools = Object.fromEntries(
    question.tools.map(({ name, description, parameters, run }) => [
      name,
      tool({ description, inputSchema: parameters, execute: async (given) => run(given) }),
    ]),
  )
  const request = {
    model,
    prompt,
    tools,
    stopWhen: stepCountIs(10),
    ...(signal === undefined ? {} : { abortSignal: signal }),
  }
  if (!stream) return (await generateText(request)).text
  let failure: unknown
  const result = streamText({ ...request, onError: ({ error }) => void (failure = error) })
  for await (const piece of result.textStream) onText?.(piece)
  if (failure !== undefined) throw failure
  return result.text
}

const aiSdkCompatibleAgent: SmallAgent = (question) => {
  const { baseURL, apiKey, name, fetch } = question.model
  const provider = createOpenAICompatible({ name: 'tiltyard', baseURL, apiKey, fetch })
  return aiSdk(provider(name), question)
}

/** The major before. What it has in common with this one is what the agent uses. */
const aiSdk5Agent: SmallAgent = (question) => {
  const { baseURL, apiKey, name, fetch } = question.model
  const provider = createOpenAICompatible1({ name: 'tiltyard', baseURL, apiKey, fetch })
  const model = provider(name) as unknown as aiSdk6.LanguageModel
  return aiSdk(model, question, aiSdk5 as unknown as typeof aiSdk6)
}

/** Speaks Responses. */
const aiSdkOpenaiAgent: SmallAgent = (question) => {
  const { baseURL, apiKey, name, fetch } = question.model
  return aiSdk(createOpenAI({ baseURL, apiKey, fetch })(name), question)
}

const agentsSdk =
  (useResponses: boolean): SmallAgent =>
  async ({ model, prompt, tools, stream, signal, onText }) => {
    const openAIClient = new OpenAI({
      baseURL: model.baseURL,
      apiKey: model.apiKey,
      fetch: model.fetch,
    })
    const agent = new Agent({
      name: 'agent',
      model: model.name,
      tools: tools.map(({ name, description, parameters, run }) =>
        agentsTool({
          name,
          description,
          parameters,
          execute: async (given: unknown) => run(given as Record<string, unknown>),
        }),
      ),
    })
    const modelProvider = new OpenAIProvider({ openAIClient, useResponses })
    const runner = new Runner({ modelProvider, tracingDisabled: true })
    const options = signal === undefined ? {} : { signal }
    if (!stream) return String((await runner.run(agent, prompt, options)).finalOutput)
    const result = await runner.run(agent, prompt, { ...options, stream: true })
    for await (const piece of result.toTextStream()) onText?.(piece)
    await result.completed
    return String(result.finalOutput)
  }

/** Speaks Responses, as it does by default. */
const agentsSdkAgent = agentsSdk(true)
const agentsSdkChatAgent = agentsSdk(false)

const langgraphAgent: SmallAgent = async ({ model, prompt, tools, stream, signal, onText }) => {
  const llm = new ChatOpenAI({
    model: model.name,
    apiKey: model.apiKey,
    streaming: stream,
    configuration: { baseURL: model.baseURL, fetch: model.fetch },
  })
  const agent = createReactAgent({
    llm,
    tools: tools.map(({ name, description, parameters, run }) =>
      langchainTool(async (given) => run(given as unknown as Record<string, unknown>), {
        name,
        description,
        schema: parameters,
      }),
    ),
  })
  const input = { messages: [{ role: 'user', content: prompt }] }
  const options = signal === undefined ? {} : { signal }
  if (!stream) return (await agent.invoke(input, options)).messages.at(-1)!.text
  let last = ''
  for await (const [mode, data] of await agent.stream(input, {
    ...options,
    streamMode: ['messages', 'values'],
  })) {
    if (mode === 'messages') onText?.(data[0].text)
    else last = data.messages.at(-1)!.text
  }
  return last
}

export const smallAgents = {
  openai: openaiAgent(OpenAI),
  'AI SDK, openai-compatible': aiSdkCompatibleAgent,
  'AI SDK, openai (Responses)': aiSdkOpenaiAgent,
  'Agents SDK (Responses)': agentsSdkAgent,
  'Agents SDK (chat)': agentsSdkChatAgent,
  'LangGraph on @langchain/openai': langgraphAgent,
} as const satisfies Readonly<Record<string, SmallAgent>>

/** Majors that many still use. */
export const olderAgents = {
  'openai 5': openaiAgent(OpenAI5 as unknown as typeof OpenAI),
  'AI SDK 5, openai-compatible': aiSdk5Agent,
} as const satisfies Readonly<Record<string, SmallAgent>>
