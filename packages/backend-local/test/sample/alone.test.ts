import { tokenPrompt, type Sampler } from '@tiltyard/core'
import { afterAll, expect, test } from 'vitest'

import { tinyBackend } from '../support/tiny.ts'

const backend = tinyBackend()
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
    const alone = await reply(await backend.sampler({ model: 'tiny' }), prompt, 1)
    const crowded = await backend.sampler({ model: 'tiny' })
    const [among] = await Promise.all([
      reply(crowded, prompt, 1),
      reply(crowded, [3, 2], 4),
      reply(crowded, [5, 1, 1], 9),
    ])
    expect(among).toEqual(alone)
  },
)
