import { tokenPrompt, type Sampler } from '@tiltyard/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { spelled, spellingTokenizer, tinyBackend, tinyShape } from './support/tiny.ts'

const backend = tinyBackend({ tokenizer: spellingTokenizer })
let sampler: Sampler
beforeAll(async () => {
  sampler = await backend.sampler({ model: 'tiny' })
})
afterAll(() => backend.close())

const prompt = (length: number) =>
  tokenPrompt(Array.from({ length }, (_, at) => (7 * at) % tinyShape.vocabularySize))

describe('stop strings', () => {
  test('one that spans tokens ends the reply where it is complete', async () => {
    const request = { prompt: prompt(6), maxTokens: 8, seeds: [1] }
    const [free] = await sampler.sample(request)
    const text = spelled(free!.ids.slice(2, 4))
    const [cut] = await sampler.sample({ ...request, stop: { tokens: [], strings: [text] } })
    expect(cut).toMatchObject({ ids: free!.ids.slice(0, 4), stop: 'stop' })
  })

  test('are refused, not ignored, where nothing tells what ids spell', async () => {
    const mute = tinyBackend()
    const stop = { tokens: [], strings: ['x'] }
    const sample = (await mute.sampler({ model: 'tiny' })).sample({
      prompt: prompt(6),
      maxTokens: 1,
      stop,
    })
    await expect(sample).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    await mute.close()
  })
})

describe('the context window', () => {
  const { contextWindow } = tinyShape

  test('ends a reply that may be longer', async () => {
    const [reply] = await sampler.sample({ prompt: prompt(contextWindow - 6), maxTokens: 100 })
    expect(reply!.ids).toHaveLength(6)
    expect(reply!.stop).toBe('length')
  })

  test('may be filled by a prompt that is scored, and needs room for a reply', async () => {
    expect(await sampler.logprobs(prompt(contextWindow))).toHaveLength(contextWindow)
    await expect(
      sampler.sample({ prompt: prompt(contextWindow), maxTokens: 1 }),
    ).rejects.toMatchObject({ code: 'DATA' })
  })
})
