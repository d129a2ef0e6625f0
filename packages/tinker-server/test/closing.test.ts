import type { Backend } from '@tiltyard/core'
import { bigramBackend, hangingSampler, simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { peer } from './peer.ts'

test('F74: limits.graceMs bounds how long a server that closes waits for what is under way', async () => {
  const inner = bigramBackend()
  const deaf: Backend = {
    ...inner,
    sampler: async (ref) => hangingSampler(await inner.sampler(ref)),
  }
  const clock = simulatedClock()
  const it = peer({ clock, limits: { graceMs: 7_000 } }, deaf)
  const { session } = await it.model()
  const opened = await it.call('/create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: 0,
    base_model: 'bigram',
  })
  await it.call('/asample', {
    sampling_session_id: opened.json['sampling_session_id'],
    seq_id: 0,
    prompt: { chunks: [{ type: 'encoded_text', tokens: [1] }] },
    sampling_params: { max_tokens: 3 },
  })
  const began = clock.now()
  await clock.drive(it.server.close())
  expect(clock.now() - began).toBe(7_000)
})
