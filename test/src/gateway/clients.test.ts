import { serveGateway } from '@tiltyard/gateway'
import { charReply, failingSampler, scriptedSampler } from '@tiltyard/testkit'
import type { OpenAI } from 'openai'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { olderAgents, openaiAgent, smallAgents, type PlainTool, type SmallAgent } from './agents.ts'
import { isUnbroken, openAttempt } from './attempts.ts'
import { learn, progress, singer } from './learn.ts'

const [major] = process.versions.node.split('.')
/** The next major of the client asks for Node 22. What it has in common with this one is what the agent uses. */
const openai7 =
  Number(major) < 22
    ? undefined
    : openaiAgent((await import('openai-7')).OpenAI as unknown as typeof OpenAI)

const sums: string[] = []

const tools: readonly PlainTool[] = [
  {
    name: 'add',
    description: 'Adds.',
    parameters: z.object({ a: z.number(), b: z.number() }),
    run({ a, b }) {
      sums.push(`${String(a)}+${String(b)}`)
      return String(Number(a) + Number(b))
    },
  },
  {
    name: 'shout',
    description: 'Makes it loud.',
    parameters: z.object({ text: z.string() }),
    run: ({ text }) => String(text).toUpperCase(),
  },
]

/** Two calls at once, arguments spelled unlike any library does; then another tool; then words. */
const script = [
  '⟦add { "b": 2,  "a": 1 }⟧⟦add {"a": 3, "b": 4}⟧',
  'Now aloud.⟦shout {"text": "grüße 👋"}⟧',
  'It is DONE 👋.',
]

describe.each(Object.entries<SmallAgent>({ ...smallAgents, ...olderAgents }))('%s', (_, agent) => {
  clientTests(agent)
})

describe.skipIf(openai7 === undefined)(
  `openai 7${openai7 === undefined ? ' (needs Node 22; CI runs it on Node 24)' : ''}`,
  () => {
    clientTests(openai7 ?? smallAgents.openai)
    test('learns as every other client does', async () => {
      const reference = await learn(singer(smallAgents.openai))
      expect(progress(reference)).toBeGreaterThan(0.3)
      expect(await learn(singer(openai7!))).toEqual(reference)
    })
  },
)

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** What every client does with a gateway. */
function clientTests(agent: SmallAgent): void {
  test.each([false, true])(
    '§18.10 §18.34 F51 F58 plays a loop of two tools, and each prompt goes on from the sampled ids (stream: %s)',
    async (stream) => {
      const sampler = scriptedSampler(script)
      const { model, replies, attempt } = openAttempt(sampler)
      sums.length = 0
      const pieces: string[] = []
      const said = await agent({
        model,
        prompt: 'go',
        tools,
        stream,
        onText: (text) => void pieces.push(text),
      })
      expect(said).toBe('It is DONE 👋.')
      expect(sums.toSorted()).toEqual(['1+2', '3+4'])
      expect(replies).toHaveLength(3)
      expect(isUnbroken(replies)).toBe(true)
      expect(replies.map(({ restart }) => restart)).toEqual([undefined, undefined, undefined])
      expect(attempt.calls.every(({ delivered }) => delivered)).toBe(true)
      expect(pieces.join('').includes('It is DONE 👋.')).toBe(stream)
    },
  )

  test('reaches a served gateway by its base URL alone', async () => {
    const { model, gateway, replies } = openAttempt(scriptedSampler(script))
    const server = await serveGateway(gateway)
    try {
      const network = { ...model, baseURL: model.baseURL, fetch }
      expect(await agent({ model: network, prompt: 'go', tools, stream: true })).toBe(
        'It is DONE 👋.',
      )
      expect(isUnbroken(replies)).toBe(true)
    } finally {
      await server.close()
    }
  })

  test('§18.5 stops at once when the attempt has ended', async () => {
    const { model, attempt, requests } = openAttempt(scriptedSampler(script))
    await attempt.close()
    await expect(agent({ model, prompt: 'go', tools, stream: false })).rejects.toThrow(
      /attempt has ended/,
    )
    expect(requests()).toBe(1)
  })

  test('§18.16 F52 raises when a stream breaks', async () => {
    const sampler = scriptedSampler(['half of it'])
    const breaking = {
      ...sampler,
      async sample(...[request]: Parameters<typeof sampler.sample>) {
        request.onTokens?.(0, charReply('half', false), new Float32Array(4))
        throw new Error('gone')
      },
    }
    const { model, replies } = openAttempt(breaking)
    await expect(agent({ model, prompt: 'go', tools, stream: true })).rejects.toThrow(
      /sampler failed|process successful response/,
    )
    expect(replies).toEqual([])
  })

  test('leaves in the middle of a stream, and its call is given up', async () => {
    const leaving = new AbortController()
    const sampler = scriptedSampler(['a long story'])
    let stop = () => {}
    const stopped = new Promise<void>((resolve) => {
      stop = resolve
    })
    const slow = {
      ...sampler,
      sample: (...[request, options]: Parameters<typeof sampler.sample>) =>
        new Promise<never>((_, reject) => {
          options?.signal?.addEventListener('abort', () => {
            reject(new Error('stopped'))
            stop()
          })
          request.onTokens?.(0, charReply('once', false), new Float32Array(4))
          leaving.abort()
        }),
    }
    const { model, replies, attempt } = openAttempt(slow, { gateway: { orphanMs: 0 } })
    const running = agent({ model, prompt: 'go', tools, stream: true, signal: leaving.signal })
    await running.catch(() => {})
    await stopped
    await new Promise(setImmediate)
    expect(attempt.calls).toMatchObject([{ status: 'cancelled', delivered: false }])
    expect(replies).toEqual([])
  })

  test('§18.48 §18.49 tries again when its connection broke, and gets the sample that it missed', async () => {
    const [begun, left] = [deferred(), deferred()]
    const sampler = scriptedSampler(['fine'])
    const { model, replies, attempt } = openAttempt({
      ...sampler,
      async sample(...given) {
        begun.resolve()
        await left.promise
        return sampler.sample(...given)
      },
    })
    let tries = 0
    const breaking: typeof fetch = async (input, init) => {
      tries += 1
      if (tries > 1) return model.fetch(input, init)
      const gone = new AbortController()
      const lost = model.fetch(input, { ...init, signal: gone.signal })
      await begun.promise
      gone.abort()
      await expect(lost).rejects.toThrow('aborted')
      left.resolve()
      throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
    }
    const { baseURL, apiKey, name } = model
    const reached = { baseURL, apiKey, name, fetch: breaking }
    expect(await agent({ model: reached, prompt: 'go', tools: [], stream: false })).toBe('fine')
    expect(tries).toBe(2)
    expect(replies.map(({ trained }) => trained)).toEqual([true])
    expect(attempt.calls).toMatchObject([{ replayed: 1, delivered: true }])
  })

  test('§18.57 tries again when the sampler was down, and has one reply of it', async () => {
    let failures = 0
    const sampler = failingSampler(scriptedSampler(['fine']), () => {
      failures += 1
      return failures === 1 ? new Error('overheated') : undefined
    })
    const { model, replies } = openAttempt(sampler, { gateway: { samplerRetries: 0 } })
    expect(await agent({ model, prompt: 'go', tools, stream: false })).toBe('fine')
    expect(replies).toHaveLength(1)
  })
}

test('§18.16 F52 a served stream that breaks never ends cleanly, and nothing is printed', async () => {
  const printed = [vi.spyOn(console, 'error'), vi.spyOn(console, 'info')]
  const { model, gateway } = openAttempt({
    ...scriptedSampler(['whole']),
    async sample({ onTokens }) {
      onTokens?.(0, charReply('half', false), new Float32Array(4))
      throw new Error('gone')
    },
  })
  const server = await serveGateway(gateway)
  const response = await fetch(`${model.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${model.apiKey}` },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'go' }], stream: true }),
  })
  await expect(response.text()).rejects.toThrow('terminated')
  await server.close()
  expect(printed.map((spy) => spy.mock.calls)).toEqual([[], []])
})

test('§18.82 LangChain knows a full context by the gateway’s words', async () => {
  const { model } = openAttempt(scriptedSampler(['x'], { contextWindow: 4 }))
  const asked = smallAgents['LangGraph on @langchain/openai']({
    model,
    prompt: 'too long',
    tools: [],
    stream: false,
  })
  await expect(asked).rejects.toThrow(expect.objectContaining({ name: 'ContextOverflowError' }))
})

test('§18.103 an Agents SDK agent talks to the gateway and to nobody else', async () => {
  const network = vi.spyOn(globalThis, 'fetch')
  const { model, requests } = openAttempt(scriptedSampler(script))
  await smallAgents['Agents SDK (Responses)']({ model, prompt: 'go', tools, stream: true })
  expect(requests()).toBe(3)
  expect(network).not.toHaveBeenCalled()
  network.mockRestore()
})
