import { promptIds } from '@tiltyard/core'
import { charRenderer, charText, scriptedSampler, simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { type ChatMessage, endpointChat, samplerChat } from '../src/index.ts'
import { quiet } from './support/play.ts'

const messages: readonly ChatMessage[] = [
  { role: 'system', content: 'You are Ann.' },
  { role: 'user', content: 'Who are you?' },
]
const completion = (content: string) => Response.json({ choices: [{ message: { content } }] })

describe('a chat with a sampler', () => {
  test('asks for the likeliest reply to the rendered conversation, under the seed', async () => {
    const sampler = scriptedSampler(['I am Ann.'])
    const renderer = charRenderer()
    const chat = samplerChat({ sampler, renderer, maxTokens: 50 })
    expect(await chat.reply(messages, { signal: quiet(), seed: 7 })).toBe('I am Ann.')
    const [request] = sampler.requests
    expect(request).toMatchObject({
      maxTokens: 50,
      temperature: 0,
      seeds: [7],
      stop: renderer.stop,
    })
    expect(charText(promptIds(request!.prompt))).toContain('Who are you?')
    expect(chat.name).toBe('scripted')
  })

  test('says when the conversation leaves no room for a reply', async () => {
    const sampler = scriptedSampler(['I am Ann.'], { contextWindow: 10 })
    const chat = samplerChat({ sampler, renderer: charRenderer() })
    await expect(chat.reply(messages, { signal: quiet() })).rejects.toMatchObject({
      code: 'CHAT',
      message: expect.stringMatching(/takes \d+ tokens of 10; there is no room/) as string,
    })
  })
})

describe('a chat with an endpoint', () => {
  /** An endpoint that answers in turn; an error is thrown instead. */
  function endpoint(...answers: readonly (Response | Error)[]) {
    const requests: { url: string; init: RequestInit }[] = []
    const send = ((url: string, init: RequestInit) => {
      const answer = answers[requests.length]!
      requests.push({ url, init })
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    }) as typeof fetch
    const clock = simulatedClock()
    const chat = endpointChat({
      url: 'http://model.test/v1/',
      model: 'small',
      apiKey: 'sentinel',
      body: { max_tokens: 9 },
      fetch: send,
      clock,
    })
    return { chat, requests, clock }
  }

  test('sends an ordinary chat completion with its key as a bearer token', async () => {
    const { chat, requests } = endpoint(completion('I am Ann.'))
    expect(await chat.reply(messages, { signal: quiet(), seed: 3 })).toBe('I am Ann.')
    const [{ url, init }] = requests as [(typeof requests)[number]]
    expect(url).toBe('http://model.test/v1/chat/completions')
    expect(new Headers(init.headers).get('authorization')).toBe('Bearer sentinel')
    expect(JSON.parse(init.body as string)).toEqual({
      model: 'small',
      messages,
      seed: 3,
      max_tokens: 9,
    })
  })

  test('tries busy, failed and unreachable services again, and waits as long as they ask', async () => {
    const { chat, requests, clock } = endpoint(
      new Response('', { status: 429, headers: { 'retry-after': '9' } }),
      new TypeError('fetch failed'),
      new Response('', { status: 503 }),
      completion('At last.'),
    )
    expect(await clock.drive(chat.reply(messages, { signal: quiet() }))).toBe('At last.')
    expect(requests).toHaveLength(4)
    expect(clock.now()).toBe(9_000 + 2_000 + 4_000)
  })

  test('gives up after its tries, and at once where trying is no use; the key is in no error', async () => {
    const broken = Array.from({ length: 4 }, () => new Response('', { status: 500 }))
    const failing = endpoint(...broken)
    const failed = await failing.clock.drive(
      failing.chat.reply(messages, { signal: quiet() }).catch((error: unknown) => error),
    )
    expect(String(failed)).toBe('TiltyardError: the chat\'s model "small" answered with status 500')
    const refusing = endpoint(new Response('bad key sentinel', { status: 401 }))
    const refused = await refusing.chat
      .reply(messages, { signal: quiet() })
      .catch((error: unknown) => error)
    expect(String(refused)).toContain('status 401')
    expect(JSON.stringify(refused) + String(refused)).not.toContain('sentinel')
    expect(refusing.requests).toHaveLength(1)
  })

  test.each(['https://me:sentinel@model.test/v1', 'https://model.test/v1?key=sentinel'])(
    'F64: an address with a secret in it is refused, and not shown: %#',
    (url) => {
      const make = () => endpointChat({ url, model: 'small' })
      expect(make).toThrow('url: an address without user, query or fragment')
      expect(make).not.toThrow('sentinel')
    },
  )

  test('an answer of another shape is an error', async () => {
    const { chat } = endpoint(Response.json({ text: 'hello' }))
    await expect(chat.reply(messages, { signal: quiet() })).rejects.toThrow(/no chat completion/)
  })
})
