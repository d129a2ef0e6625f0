import type { Conversation } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { createGateway } from '../src/index.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { postTo, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

const renderer = byteRenderer()

function served(key?: string) {
  const samplers = [
    byteSampler(['from the first'], { step: 1 }),
    byteSampler(['from the second'], { step: 2 }),
  ] as const
  const gateway = createGateway({
    policies: {
      policy: { sampler: samplers[0], renderer, sampling: {} },
      'step-2': { sampler: samplers[1], renderer, sampling: {} },
    },
    serving: key === undefined ? {} : { key },
  })
  return { gateway, samplers }
}

const said = { messages: [user('go')], temperature: 0.5, seed: 7 }

test('a served gateway answers under each alias, with the client’s settings', async () => {
  const { gateway, samplers } = served()
  const url = `${gateway.origin}/v1/chat/completions`
  const second = await postTo(gateway, url, 'any', { ...said, model: 'step-2' })
  expect(await second.json()).toMatchObject({
    choices: [{ message: { content: 'from the second' } }],
  })
  await postTo(gateway, url, undefined, { ...said, model: 'gpt-4o' })
  expect(samplers[0].seen[0]!.request).toMatchObject({ temperature: 0.5, seeds: [7] })
  const models = await gateway.fetch(`${gateway.origin}/v1/models`)
  expect(await models.json()).toMatchObject({ data: [{ id: 'policy' }, { id: 'step-2' }] })
})

test('with a key it wants that key', async () => {
  const { gateway } = served('key-of-the-house')
  const url = `${gateway.origin}/v1/chat/completions`
  expect(gateway.needsNoKey).toBe(false)
  expect((await postTo(gateway, url, undefined, said)).status).toBe(401)
  expect((await postTo(gateway, url, 'another-key', said)).status).toBe(401)
  expect((await postTo(gateway, url, 'key-of-the-house', said)).status).toBe(200)
})

test('a page from elsewhere can’t use a served gateway that asks for no key', async () => {
  const { gateway, samplers } = served()
  const url = `${gateway.origin}/v1/chat/completions`
  const foreign = await postTo(gateway, url, undefined, said, {
    headers: { origin: 'https://evil.example' },
  })
  expect(foreign.status).toBe(403)
  const own = await postTo(gateway, url, undefined, said, { headers: { origin: gateway.origin } })
  expect(own.status).toBe(200)
  const rebound = 'http://evil.example/v1/chat/completions'
  expect(
    (await postTo(gateway, rebound, undefined, said, { headers: { host: 'evil.example' } })).status,
  ).toBe(403)
  expect(samplers[0].seen).toHaveLength(1)
})

test('a conversation that breaks the renderer breaks no other', async () => {
  const fragile = {
    ...renderer,
    prompt(conversation: Conversation) {
      if (conversation.messages.some(({ content }) => content === 'boom')) throw new Error('broken')
      return renderer.prompt(conversation)
    },
  }
  const gateway = createGateway({
    policies: { policy: { sampler: byteSampler(['x']), renderer: fragile, sampling: {} } },
    serving: {},
  })
  const url = `${gateway.origin}/v1/chat/completions`
  const statuses: number[] = []
  for (const words of ['go', 'boom', 'go']) {
    const response = await postTo(gateway, url, undefined, { messages: [user(words)] })
    statuses.push(response.status)
  }
  expect(statuses).toEqual([200, 500, 200])
})

test('the page to talk to policies lets in nothing but itself', async () => {
  const { gateway } = served()
  for (const [path, type] of [
    ['/', 'text/html'],
    ['/chat.js', 'text/javascript'],
    ['/chat.css', 'text/css'],
  ] as const) {
    const response = await gateway.fetch(gateway.origin + path)
    expect(response.headers.get('content-type')).toContain(type)
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    const body = await response.text()
    expect(body).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|<style|style=|onclick=/)
  }
  expect((await createGateway().fetch('http://x/')).status).toBe(404)
})

test('what was said long ago is forgotten, and the newest stays', async () => {
  const { gateway } = served()
  const url = `${gateway.origin}/v1/responses`
  const say = async (more: object = {}) =>
    (await (await postTo(gateway, url, undefined, { input: 'go', ...more })).json()) as {
      id: string
      error: unknown
    }
  const first = await say()
  for (let call = 0; call < 1_000; call += 1) await say()
  const newest = await say()
  expect((await say({ previous_response_id: newest.id })).error).toBeNull()
  expect((await say({ previous_response_id: first.id })).error).toMatchObject({
    param: 'previous_response_id',
  })
})
