import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import {
  systemClock,
  tokenChunk,
  tokenPrompt,
  type Backend,
  type Clock,
  type Datum,
  type Sample,
} from '@tiltyard/core'
import { bigramBackend } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'
import { expect, test } from 'vitest'

import { flakyProxy } from './flaky-proxy.ts'

/** Twenty-five seconds pass in one, so that pauses between tries and requests without an answer cost a test little. */
const hurried: Clock = {
  now: () => 25 * systemClock.now(),
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / 25, signal),
}

function datumOf(prompt: readonly number[], { ids, logprobs }: Sample, advantage: number): Datum {
  const all = Int32Array.from([...prompt, ...ids])
  const zeros = prompt.slice(1).map(() => 0)
  return {
    input: [tokenChunk(all.slice(0, -1))],
    targets: all.slice(1),
    logprobs: Float32Array.from([...zeros, ...logprobs]),
    advantages: Float32Array.from([...zeros, ...Array.from(ids, () => advantage)]),
  }
}

/** A small training by reinforcement: each step samples under the newest weights and learns from that. */
async function train(backend: Backend, steps: number): Promise<readonly number[]> {
  const learner = await backend.learner({ model: 'bigram', adaptation: { rank: 4, seed: 1 } })
  for (let step = 0; step < steps; step += 1) {
    const sampler = await learner.publish()
    const data = await Promise.all(
      Array.from({ length: 16 }, async (_, index) => {
        const prompt = [index, (index + step) % 64]
        const [sample] = await sampler.sample({
          prompt: tokenPrompt(prompt),
          maxTokens: 8,
          seeds: [100 * step + index],
        })
        const even = sample!.ids.filter((id) => id % 2 === 0).length
        return datumOf(prompt, sample!, even / 8 - 0.5)
      }),
    )
    await sampler.close()
    const learning = learner.forwardBackward(data, { name: 'importance_sampling' })
    const stepping = learner.optimStep({ learningRate: 0.05 })
    await Promise.all([learning, stepping])
    if (step % 10 === 9) await learner.save(`step-${step}`)
  }
  expect(learner.steps).toBe(steps)
  const rows = Array.from({ length: 64 }, (_, id) => ({
    input: [tokenChunk([id])],
    targets: Int32Array.of((id + 1) % 64),
    weights: new Float32Array(1),
  }))
  const { logprobs } = await learner.forward(rows, { name: 'cross_entropy' })
  return logprobs.map(([value]) => value!)
}

/** Once a step each. Were one carried out twice, or with another's number, the weights would be others. */
const TRAINING = ['forward_backward', 'optim_step', 'save_weights_for_sampler']

test('over two thousand requests, one in twenty of which meets a fault, one in four of those that train, leave the weights as none would', async () => {
  const steps = 60
  const undisturbed = await train(bigramBackend(), steps)
  const server = tinkerServer({ backend: bigramBackend(), limits: { holdMs: 500 } })
  const proxy = await flakyProxy({
    target: await server.listen(),
    seed: 1,
    share: (operation) => (TRAINING.includes(operation) ? 0.25 : 0.05),
  })
  const backend = tinkerBackend({
    baseUrl: proxy.url,
    apiKey: 'tml-dummy',
    clock: hurried,
    // Minutes of ours, so that a slow machine gives nothing up.
    deadlines: { retries: 10_000_000, sample: 10_000_000 },
  })
  const disturbed = await train(backend, steps)
  await backend.close()
  await proxy.close()
  await server.close()
  expect(disturbed).toEqual(undisturbed)
  expect(proxy.requests).toBeGreaterThan(2_000)
  expect(proxy.faults).toBeGreaterThan(0.03 * proxy.requests)
  for (const operation of [...TRAINING, 'asample', 'retrieve_future'])
    expect([operation, proxy.met(operation).size]).toEqual([operation, 12])
})

test('a service that takes calls and never answers is reported, with what was waited for', async () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => sockets.add(socket))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const backend = tinkerBackend({
    baseUrl: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    apiKey: 'tml-dummy',
    deadlines: { request: 50, retries: 500 },
  })
  await expect(backend.sampler({ model: 'bigram' })).rejects.toMatchObject({
    code: 'TINKER_UNREACHABLE',
    operation: 'ask the service for its settings',
  })
  await backend.close()
  for (const socket of sockets) socket.destroy()
  silent.close()
})

test('a program that blocks its event loop for ten seconds keeps its session and what was under way', async () => {
  const script = fileURLToPath(new URL('tinker-process.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, '60000'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [address] = (await once(child.stdout, 'data')) as [Buffer]
  const backend = tinkerBackend({ baseUrl: address.toString().trim(), apiKey: 'tml-dummy' })
  const learner = await backend.learner({ model: 'bigram', adaptation: { rank: 4, seed: 1 } })
  const sampler = await learner.publish()
  const sampling = sampler.sample({ prompt: tokenPrompt([1]), maxTokens: 400, seeds: [1] })
  expect(String(await once(child.stdout, 'data'))).toBe('sampling\n')
  const until = performance.now() + 10_000
  while (performance.now() < until) Math.sqrt(until)
  const [sample] = await sampling
  expect(sample!.ids).toHaveLength(400)
  await learner.optimStep({ learningRate: 0.1 })
  expect(learner.steps).toBe(1)
  await backend.close()
  child.stdin.end()
  await once(child, 'exit')
})
