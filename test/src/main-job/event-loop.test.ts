import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { localBackend } from '@tiltyard/backend-local'
import { tokenChunk, tokenPrompt } from '@tiltyard/core'
import { expect, test } from 'vitest'

const require = createRequire(import.meta.url)
/** The runtime's modules that this thread has loaded; without them it runs no graph. */
const runtimeModules = () => Object.keys(require.cache).filter((path) => /onnxruntime/.test(path))

test('the caller’s thread runs no graph while the policy trains and samples', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tiltyard-event-loop-'))
  const backend = localBackend({ models: { nano: { shape: { vocabularySize: 32 } } }, folder })
  const learner = await backend.learner({ model: 'nano', adaptation: 'full' })
  const datum = {
    input: [tokenChunk([1, 2, 3])],
    targets: Int32Array.of(2, 3, 4),
    weights: Float32Array.of(1, 1, 1),
  }
  await learner.forwardBackward([datum], { name: 'cross_entropy' })
  await learner.optimStep({ learningRate: 0.01 })
  const sampler = await learner.publish()
  const [reply] = await sampler.sample({ prompt: tokenPrompt([1, 2]), maxTokens: 2 })
  const { executor } = await backend.describe()
  await backend.close()
  rmSync(folder, { recursive: true, force: true })

  expect(reply!.ids).toHaveLength(2)
  expect(runtimeModules()).toEqual([])
  // What would be seen if it were here.
  const ofBackend = createRequire(require.resolve('@tiltyard/backend-local'))
  ofBackend(executor.split(' ')[0]!)
  expect(runtimeModules()).not.toEqual([])
})
