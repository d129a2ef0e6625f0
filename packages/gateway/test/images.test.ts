import { promptIds } from '@tiltyard/core'
import { charRenderer, scriptedSampler } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createGateway } from '../src/index.ts'
import { recorded } from './support/harness.ts'

const TOKENS_OF_AN_IMAGE = 5
const pngOf = (width: number) => {
  const bytes = Buffer.from('89504e470d0a1a0a0000000d49484452000000030000012c0802000000', 'hex')
  bytes.writeUInt32BE(width, 16)
  return `data:image/png;base64,${bytes.toString('base64')}`
}
const text = (words: string) => ({ type: 'text', text: words })
const image = (url: string) => ({ type: 'image_url', image_url: { url } })

/** A gateway before a model that sees images, unless told otherwise. */
function seeing({ sees = true } = {}) {
  const sampler = scriptedSampler(({ index }) => `reply ${index}`)
  const renderer = charRenderer(sees ? { imageTokens: TOKENS_OF_AN_IMAGE } : {})
  const gateway = createGateway()
  const record = recorded()
  const attempt = gateway.open({
    rollout: 'r',
    policy: { sampler, renderer, sampling: {} },
    record,
  })
  const post = async (route: string, body: object) => {
    const response = await gateway.fetch(gateway.origin + attempt.path + route, {
      method: 'POST',
      headers: { 'x-api-key': attempt.key },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Reply }
  }
  return { attempt, sampler, record, post }
}

interface Reply {
  readonly usage: { readonly prompt_tokens: number }
  readonly prompt_token_ids: readonly number[]
  readonly error: { readonly code: string; readonly param: string; readonly message: string }
}

test('§18.33 an image reaches a model that sees, as a chunk of the prompt; the conversation goes on from it', async () => {
  const { sampler, post, attempt, record } = seeing()
  const shown = { role: 'user', content: [text('What is '), image(pngOf(7)), text('?')] }
  const first = await post('/chat/completions', { messages: [shown], return_token_ids: true })
  expect(first.status).toBe(200)
  const chunks = sampler.requests[0]!.prompt.chunks()
  expect(chunks.filter(({ type }) => type === 'image')).toMatchObject([
    { format: 'png', tokens: TOKENS_OF_AN_IMAGE },
  ])
  expect(first.body.usage.prompt_tokens).toBe(sampler.requests[0]!.prompt.length)
  const unknown = first.body.prompt_token_ids.filter((id) => id === -1)
  expect(unknown).toHaveLength(TOKENS_OF_AN_IMAGE)

  const messages = [
    shown,
    { role: 'assistant', content: 'reply 0' },
    { role: 'user', content: 'On.' },
  ]
  await post('/chat/completions', { messages })
  expect(sampler.requests[1]!.prompt.parent).toBe(sampler.requests[0]!.prompt)
  expect(attempt.calls[1]!.reusedTokens).toBeGreaterThan(TOKENS_OF_AN_IMAGE)
  expect(record.replies.map(({ restart }) => restart)).toEqual([undefined, undefined])
})

test('another image is another conversation', async () => {
  const { attempt, post } = seeing()
  for (const width of [7, 8, 7])
    await post('/chat/completions', {
      messages: [{ role: 'user', content: [image(pngOf(width))] }],
    })
  expect(attempt.calls.flatMap(({ samples }) => samples.map(({ fork }) => fork))).toEqual([
    undefined,
    'new_conversation',
    'sibling',
  ])
})

test('images of the Responses dialect, and those that a tool gives', async () => {
  const { sampler, post } = seeing()
  const call = { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' }
  const output = [{ type: 'input_image', image_url: pngOf(3) }]
  const { status } = await post('/responses', {
    input: [
      { role: 'user', content: [{ type: 'input_image', image_url: pngOf(7) }] },
      call,
      { type: 'function_call_output', call_id: 'c', output },
    ],
  })
  expect(status).toBe(200)
  const chunks = sampler.requests[0]!.prompt.chunks()
  expect(chunks.filter(({ type }) => type === 'image')).toHaveLength(2)
})

test.each([
  ['an address elsewhere', 'https://example.com/cat.png', 'nothing is fetched'],
  ['no base64', 'data:image/png,abc', 'nothing is fetched'],
  ['another format', `data:image/gif;base64,${btoa('GIF89a')}`, 'its bytes are neither'],
])('§18.33 an image with %s is refused by name', async (_, url, why) => {
  const { post, sampler } = seeing()
  const { status, body } = await post('/chat/completions', {
    messages: [{ role: 'user', content: [image(url)] }],
  })
  expect(status).toBe(400)
  expect(body.error).toMatchObject({ code: 'unsupported_content', param: 'messages[0].content' })
  expect(body.error.message).toContain(why)
  expect(sampler.requests).toEqual([])
})

test('§18.33 a model that reads text only refuses images before anything is sampled', async () => {
  const { post, sampler, attempt } = seeing({ sees: false })
  const chat = await post('/chat/completions', {
    messages: [{ role: 'user', content: [image(pngOf(7))] }],
  })
  expect(chat.status).toBe(400)
  expect(chat.body.error).toMatchObject({ code: 'unsupported_content', param: 'messages' })
  const content = [{ type: 'input_image', image_url: pngOf(7) }]
  const response = await post('/responses', { input: [{ role: 'user', content }] })
  expect(response.body.error).toMatchObject({ code: 'unsupported_content', param: 'input' })
  expect(sampler.requests).toEqual([])
  expect(attempt.calls).toEqual([])
})

test('§18.33 images in front of a backend that takes none are refused, and not tried again', async () => {
  const { sampler } = seeing()
  let tries = 0
  const blind = {
    ...sampler,
    async sample(...[request]: Parameters<typeof sampler.sample>) {
      tries += 1
      promptIds(request.prompt)
      return sampler.sample(request)
    },
  }
  const gateway = createGateway()
  const renderer = charRenderer({ imageTokens: TOKENS_OF_AN_IMAGE })
  const attempt = gateway.open({
    rollout: 'r',
    policy: { sampler: blind, renderer, sampling: {} },
  })
  const response = await gateway.fetch(`${gateway.origin}${attempt.path}/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': attempt.key },
    body: JSON.stringify({ messages: [{ role: 'user', content: [image(pngOf(7))] }] }),
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { code: 'unsupported_content' } })
  expect(tries).toBe(1)
})

test('system prompts and replies hold no images', async () => {
  const { post } = seeing()
  for (const role of ['system', 'assistant']) {
    const messages = [
      { role, content: [image(pngOf(7))] },
      { role: 'user', content: 'go' },
    ]
    const { body } = await post('/chat/completions', { messages })
    expect(body.error).toMatchObject({ code: 'unsupported_content', param: 'messages[0].content' })
  }
})
