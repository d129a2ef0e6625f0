import { spawn, type ChildProcess } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import { tokenChunk, tokenPrompt, type Backend, type Datum, type Learner } from '@tiltyard/core'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { describeWith } from '../../support/machine.ts'
import { freePorts } from '../../support/ports.ts'
import { prepare, python, skyrl } from './environments.ts'
import { writeTinyQwen3 } from './tiny-qwen3.ts'

/**
 * SkyRL starts the process that holds its model through `uv run`, and reads in its parent's command line how it was started itself.
 * This stands in for uv where the packages are installed already: it runs what follows `-m`.
 */
const UV = `#!/bin/sh
while [ "$1" != -m ]; do shift; done
python "$@"
`

// A server of NovaSky's, which nobody here wrote: what our client believes of the protocol has to hold there too.
describeWith(python(skyrl.minor), '#69 our client against SkyRL’s server, JAX on the CPU', () => {
  const ids = Int32Array.from({ length: 17 }, (_, index) => 100 + 3 * index)
  const datum: Datum = {
    input: [tokenChunk(ids.slice(0, 16))],
    targets: ids.slice(1),
    weights: new Float32Array(16).fill(1),
  }
  const crossEntropy = { name: 'cross_entropy' } as const
  const adaptation = { rank: 4, seed: 1 }
  let folder: string
  let model: string
  let server: ChildProcess
  let backend: Backend
  let learner: Learner

  beforeAll(async () => {
    const interpreter = await prepare(skyrl)
    folder = await mkdtemp(join(tmpdir(), 'tiltyard-skyrl-'))
    model = join(folder, 'tiny-qwen3')
    await writeTinyQwen3(model)
    await writeFile(join(folder, 'uv'), UV)
    await chmod(join(folder, 'uv'), 0o755)
    const [port] = await freePorts(1)
    const settings = { max_lora_adapters: 4, max_lora_rank: 8 }
    server = spawn(
      'sh',
      [
        [join(folder, 'uv'), 'run', '-m', 'skyrl.tinker.api', '--base-model', model],
        ['--backend', 'jax', '--backend-config', JSON.stringify(settings)],
        ['--checkpoints-base', join(folder, 'checkpoints')],
        ['--database-url', `sqlite:///${join(folder, 'tinker.db')}`],
        ['--host', '127.0.0.1', '--port', String(port)],
      ].flat(),
      {
        env: {
          ...process.env,
          PATH: [folder, dirname(interpreter), process.env['PATH']].join(delimiter),
          JAX_PLATFORMS: 'cpu',
        },
        // A group of its own, so that its children end with it.
        detached: true,
        stdio: ['ignore', 'ignore', 'ignore'],
      },
    )
    backend = tinkerBackend({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'tml-dummy' })
    await untilItAnswers(server, `http://127.0.0.1:${port}/api/v1/healthz`)
  })

  afterAll(async () => {
    await backend?.close()
    if (server?.pid !== undefined) process.kill(-server.pid, 'SIGKILL')
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  })

  test('it has the model', async () => {
    expect((await backend.describe()).models.map(({ name }) => name)).toEqual([model])
  })

  test('it trains: calls without waiting, and a loss that falls', async () => {
    learner = await backend.learner({ model, adaptation })
    const before = await learner.forward([datum], crossEntropy)
    expect(before.logprobs[0]).toHaveLength(16)
    // Random weights over 2,048 ids: about ln 2048 = 7.6 nats a token.
    expect(before.loss / 16).toBeGreaterThan(6)
    const losses: number[] = []
    for (let step = 0; step < 6; step += 1) {
      const learning = learner.forwardBackward([datum, datum], crossEntropy)
      await Promise.all([learning, learner.optimStep({ learningRate: 0.01 })])
      losses.push((await learning).loss)
    }
    expect(losses.at(-1)).toBeLessThan(losses[0]! - 1)
    expect(learner.steps).toBe(6)
  })

  test('it samples from what was learned, and scores as the learner does', async () => {
    const sampler = await learner.publish()
    const request = { prompt: tokenPrompt(ids.slice(0, 8)), maxTokens: 6 }
    const [first, second] = await sampler.sample({ ...request, n: 2, seeds: [1, 2] })
    const [again] = await sampler.sample({ ...request, seeds: [1] })
    expect(again!.ids).toEqual(first!.ids)
    expect(second!.ids).not.toEqual(first!.ids)
    expect(first!.logprobs).toHaveLength(first!.ids.length)
    const scored = await sampler.logprobs(tokenPrompt(ids))
    const [learned] = (await learner.forward([datum], crossEntropy)).logprobs
    for (const [position, value] of learned!.entries())
      expect(Math.abs(scored[position + 1]! - value)).toBeLessThan(1e-3)
  })

  test('it saves, loads and publishes', async () => {
    const from = await learner.save('one')
    expect(await backend.checkpoints().exists(from)).toBe(true)
    const loaded = await backend.learner({ model, adaptation, from })
    const [there, here] = await Promise.all([
      loaded.forward([datum], crossEntropy),
      learner.forward([datum], crossEntropy),
    ])
    expect(Math.abs(there.loss - here.loss)).toBeLessThan(1e-2)
    const published = await learner.publish({ name: 'served' })
    const opened = await backend.sampler({ checkpoint: published.checkpoint! })
    const [sample] = await opened.sample({ prompt: tokenPrompt(ids.slice(0, 8)), maxTokens: 3 })
    expect(sample!.ids.length).toBeGreaterThan(0)
  })

  test('a checkpoint that isn’t there is not found', async () => {
    const missing = { path: 'tinker://model_none/weights/none', kind: 'training' } as const
    await expect(backend.learner({ model, adaptation, from: missing })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})

async function untilItAnswers(server: ChildProcess, url: string): Promise<void> {
  for (let answers = false; !answers;) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
    answers = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
  }
}
