import { tokenPrompt } from '@tiltyard/core'
import { expect, test } from 'vitest'

import {
  charIds,
  charMarkers,
  charText,
  failingSampler,
  hangingSampler,
  scriptedSampler,
  simulatedClock,
  slowSampler,
} from '../src/index.ts'

const prompt = tokenPrompt(charIds('Hi'))

test('a scripted sampler replies in order, then with its last reply', async () => {
  const sampler = scriptedSampler(['one', 'two'])
  const texts: string[] = []
  for (let call = 0; call < 3; call += 1) {
    const [sample] = await sampler.sample({ prompt, maxTokens: 10 })
    texts.push(charText(sample!.ids))
  }
  expect(texts).toEqual(['one⟨end⟩', 'two⟨end⟩', 'two⟨end⟩'])
  expect(sampler.requests).toHaveLength(3)
})

test('a script may answer what it is asked, call by call and sample by sample', async () => {
  const sampler = scriptedSampler(({ text, index }) => `${text}${index}`)
  const samples = await sampler.sample({ prompt, maxTokens: 10, n: 2 })
  expect(samples.map(({ ids }) => charText(ids))).toEqual(['Hi0⟨end⟩', 'Hi1⟨end⟩'])
})

test('what is longer than the request allows is cut there', async () => {
  const [sample] = await scriptedSampler(['much']).sample({ prompt, maxTokens: 3 })
  expect(sample).toMatchObject({ ids: charIds('muc'), stop: 'length' })
  expect(sample?.logprobs).toHaveLength(3)
})

test('ids, log-probabilities and stop can be given', async () => {
  const reply = { ids: [1, charMarkers.eos], logprobs: [-0.5, -0.25], stop: 'stop' } as const
  const [sample] = await scriptedSampler([reply]).sample({ prompt, maxTokens: 3 })
  expect(sample).toEqual({
    ids: Int32Array.of(1, charMarkers.eos),
    logprobs: Float32Array.of(-0.5, -0.25),
    stop: 'stop',
  })
})

test('a closed sampler refuses', async () => {
  const sampler = scriptedSampler(['x'])
  await sampler.close()
  expect(sampler.closed).toBe(true)
  await expect(sampler.sample({ prompt, maxTokens: 3 })).rejects.toThrow('the sampler is closed')
})

test('a slow sampler takes its time, and stops when told to', async () => {
  const clock = simulatedClock()
  const sampler = slowSampler(scriptedSampler(['x']), {
    milliseconds: (call) => 100 * (call + 1),
    clock,
  })
  await clock.drive(sampler.sample({ prompt, maxTokens: 3 }))
  expect(clock.now()).toBe(100)
  await clock.drive(sampler.sample({ prompt, maxTokens: 3 }))
  expect(clock.now()).toBe(300)
  const controller = new AbortController()
  const call = sampler.sample({ prompt, maxTokens: 3 }, { signal: controller.signal })
  controller.abort(new Error('enough'))
  await expect(call).rejects.toThrow('enough')
})

test('a failing sampler fails at the calls of its schedule', async () => {
  const sampler = failingSampler(scriptedSampler(['x']), (call) =>
    call === 1 ? new Error('busy') : undefined,
  )
  const outcomes: string[] = []
  for (let call = 0; call < 3; call += 1) {
    outcomes.push(
      await sampler.sample({ prompt, maxTokens: 3 }).then(
        () => 'fine',
        ({ message }: Error) => message,
      ),
    )
  }
  expect(outcomes).toEqual(['fine', 'busy', 'fine'])
})

test('a hanging sampler ends with its signal only', async () => {
  const controller = new AbortController()
  const call = hangingSampler(scriptedSampler([])).sample(
    { prompt, maxTokens: 3 },
    { signal: controller.signal },
  )
  controller.abort(new Error('enough'))
  await expect(call).rejects.toThrow('enough')
})
