import { inspect } from 'node:util'

import { expect, test } from 'vitest'

import { bench, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

test.each([false, true])(
  'F57 what the policy’s service says of its credentials reaches no client, log or record (stream: %s)',
  async (stream) => {
    const heard: unknown[] = []
    const hear = (...said: readonly unknown[]) => void heard.push(said)
    const sampler = byteSampler(['never'], {
      before: async () => {
        throw new Error('401 from the service: no such key tml-SENTINEL', {
          cause: { headers: { 'x-api-key': 'tml-SENTINEL' } },
        })
      },
    })
    const { post, record, attempt } = bench([], {
      sampler,
      gateway: {
        samplerRetries: 0,
        logger: { debug: hear, info: hear, warn: hear, error: hear },
      },
    })
    const answer = await post('/chat/completions', { messages: [user('go')], stream })
    const text = await answer.text().catch((error: unknown) => inspect(error, { depth: null }))
    expect(text).toContain('the sampler failed')
    expect(attempt.calls.map(({ status }) => status)).toEqual(['failed'])
    const told = inspect([text, [...answer.headers], heard, attempt.calls, record], { depth: null })
    expect(told).not.toContain('SENTINEL')
  },
)
