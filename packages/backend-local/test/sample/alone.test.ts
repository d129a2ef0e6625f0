import { tokenPrompt, type Sampler } from '@tiltyard/core'
import { afterAll, expect, test } from 'vitest'

import { localBackend } from '../../src/index.ts'

const shape = {
  vocabularySize: 40,
  width: 32,
  layers: 1,
  heads: 2,
  kvHeads: 1,
  headSize: 16,
  hidden: 64,
  contextWindow: 64,
}
const backend = localBackend({
  models: { small: { shape, initial: { seed: 5, deviation: 0.1 } } },
  folder: 'never-written',
  threads: 1,
})
afterAll(() => backend.close())

async function reply(sampler: Sampler, prompt: readonly number[], seed: number) {
  const [sample] = await sampler.sample({
    prompt: tokenPrompt(prompt),
    maxTokens: 6,
    seeds: [seed],
  })
  return [...sample!.ids, ...sample!.logprobs]
}

test.each([[[1]], [[1, 2]], [[1, 2, 3, 4, 5]]])(
  'a reply to %j is the same bits alone as among strangers',
  async (prompt) => {
    const alone = await reply(await backend.sampler({ model: 'small' }), prompt, 1)
    const crowded = await backend.sampler({ model: 'small' })
    const [among] = await Promise.all([
      reply(crowded, prompt, 1),
      reply(crowded, [3, 2], 4),
      reply(crowded, [5, 1, 1], 9),
    ])
    expect(among).toEqual(alone)
  },
)
