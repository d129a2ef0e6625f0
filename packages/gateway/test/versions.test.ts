import * as http from 'node:http'

import { expect, test } from 'vitest'

import { createGateway, serveGateway } from '../src/index.ts'
import { sourceOf } from './support/agent.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { postTo, user } from './support/harness.ts'
import { playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

function versionOf(response: Response): string | null {
  return response.headers.get('x-tiltyard-policy-version')
}

test('§18.90 §18.91 a new version serves calls that come after it; the old one ends its own, and is then let go', async () => {
  const released: string[] = []
  const { deferred } = await import('../src/waiting.ts')
  const held = deferred<void>()
  const policy = (step: number, before?: () => Promise<void>) => ({
    sampler: byteSampler([`v${step}`], { step, ...(before === undefined ? {} : { before }) }),
    renderer: byteRenderer(),
    sampling: {},
  })
  const gateway = createGateway()
  gateway.publish(
    'policy',
    policy(1, () => held.promise),
    () => released.push('v1'),
  )
  const latest = gateway.open({ rollout: 'latest', policy: { alias: 'policy', mode: 'latest' } })
  const pinned = gateway.open({ rollout: 'pinned', policy: { alias: 'policy' } })
  const call = (attempt: typeof latest) =>
    postTo(gateway, `${gateway.baseURL(attempt)}/chat/completions`, attempt.key, {
      messages: [user('go')],
    })
  const before = call(latest)
  await new Promise(setImmediate)
  gateway.publish('policy', policy(2), () => released.push('v2'))
  const after = await call(latest)
  const still = call(pinned)
  held.resolve()
  expect([versionOf(await before), versionOf(after), versionOf(await still)]).toEqual([
    'v1',
    'v2',
    'v1',
  ])
  expect(latest.calls.map(({ version }) => version.step)).toEqual([1, 2])
  expect(released).toEqual([])
  await pinned.close()
  expect(released).toEqual(['v1'])
})

test('§18.89 §18.95 a hundred versions behind one address; an evaluation’s settings never reach a training call', async () => {
  const gateway = createGateway()
  const renderer = byteRenderer()
  const evaluated = byteSampler(['e'])
  const evaluation = gateway.open({
    rollout: 'eval',
    policy: { sampler: evaluated, renderer, sampling: { temperature: 0.25 } },
  })
  const origin = gateway.origin
  for (let step = 0; step < 100; step += 1) {
    const sampler = byteSampler(['t'], { step })
    gateway.publish('policy', { sampler, renderer, sampling: {} })
    const attempt = gateway.open({ rollout: `train ${step}`, policy: { alias: 'policy' } })
    const bodies = [attempt, evaluation].map((it) =>
      postTo(gateway, `${gateway.baseURL(it)}/chat/completions`, it.key, {
        messages: [user('go')],
      }),
    )
    expect((await Promise.all(bodies)).map(({ status }) => status)).toEqual([200, 200])
    expect(sampler.seen[0]!.request.temperature).toBeUndefined()
    expect(attempt.calls[0]!.version.step).toBe(step)
    await attempt.close()
  }
  expect(gateway.origin).toBe(origin)
  expect(evaluated.seen.every(({ request }) => request.temperature === 0.25)).toBe(true)
})

test('§18.89 a hundred versions behind one connection', async () => {
  const gateway = createGateway()
  const server = await serveGateway(gateway)
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const renderer = byteRenderer()
  const ports = new Set<number | undefined>()
  gateway.publish('policy', { sampler: byteSampler(['x']), renderer, sampling: {} })
  const attempt = gateway.open({ rollout: 'r', policy: { alias: 'policy', mode: 'latest' } })
  const base = gateway.baseURL(attempt)
  const ask = () =>
    new Promise<string>((resolve, reject) => {
      const options = {
        method: 'POST',
        agent,
        headers: { authorization: `Bearer ${attempt.key}`, 'content-type': 'application/json' },
      }
      const asked = http.request(`${base}/chat/completions`, options, (answer) => {
        ports.add(answer.socket.localPort)
        answer
          .resume()
          .on('end', () => resolve(answer.headers['x-tiltyard-policy-version'] as string))
      })
      asked.on('error', reject).end(JSON.stringify({ messages: [user('go')] }))
    })
  const served: string[] = []
  for (let step = 0; step < 100; step += 1) {
    gateway.publish('policy', { sampler: byteSampler(['x'], { step }), renderer, sampling: {} })
    served.push(await ask())
  }
  expect(served).toEqual(Array.from({ length: 100 }, (_, step) => `v${step}`))
  expect(ports.size).toBe(1)
  expect(gateway.baseURL(attempt)).toBe(base)
  agent.destroy()
  await server.close()
  await gateway.close()
})

test('a frozen partner answers under its own alias, and is never trained', async () => {
  const partner = byteSampler(['partner'], { step: 9 })
  const gateway = createGateway({
    policies: { partner: { sampler: partner, renderer: byteRenderer(), sampling: {} } },
  })
  const source = sourceOf(gateway, async (_, { model }) => {
    for (const name of [model.name, 'partner'])
      await model.fetch(`${model.baseURL}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${model.apiKey}` },
        body: JSON.stringify({ model: name, messages: [user('go')] }),
      })
  })
  const { record } = await playFirst(source, byteSampler(['own']))
  expect(record.replies.map(({ trained, version }) => [trained, version.step])).toEqual([
    [true, 0],
    [false, 9],
  ])
})
