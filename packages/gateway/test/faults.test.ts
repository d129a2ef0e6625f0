import { StoreError, type PlayRecorder, type Renderer } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { createGateway, type AgentFunction, type AgentTask } from '../src/index.ts'
import { ask, sourceOf } from './support/agent.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { recorded, user } from './support/harness.ts'
import { openFirst, playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

test('a sampler that is down is no fault of the agent', async () => {
  const sampler = byteSampler(['hi'], {
    before: async () => {
      throw new Error('down')
    },
  })
  const source = sourceOf(createGateway({ samplerRetries: 0 }), async (_, context) => {
    expect((await ask(context)).status).toBe(502)
    throw new Error('no answer')
  })
  expect((await playFirst(source, sampler)).end).toMatchObject({
    kind: 'failed',
    phase: 'sample',
  })
})

describe('a renderer that fails', () => {
  const broken: Renderer = {
    ...byteRenderer(),
    prompt() {
      throw new TypeError('no such role')
    },
  }
  const play = async (agent: AgentFunction<AgentTask>) => {
    const verifiers = { done: () => 0 }
    const episode = await openFirst(
      sourceOf(createGateway(), agent, { onAgentError: 'score', verifiers }),
    )
    const { signal } = new AbortController()
    const policy = { sampler: byteSampler(['x']), renderer: broken, sampling: {} }
    try {
      return await episode.play(policy, { signal, seed: 1, limits: {}, record: recorded() })
    } finally {
      await episode.close()
    }
  }

  test('is no fault of the agent that gives up, even where crashes are scored', async () => {
    const giveUp = play(async (_, context) => {
      expect((await ask(context)).status).toBe(500)
      throw new Error('no answer')
    })
    await expect(giveUp).rejects.toMatchObject({ code: 'renderer_failed' })
  })

  test('ends the attempt, whatever the agent makes of it', async () => {
    const statuses: number[] = []
    const goOn = play(async (_, context) => {
      for (const words of ['one', 'two']) {
        const { status } = await ask(context, words)
        statuses.push(status)
      }
      return 1
    })
    await expect(goOn).rejects.toMatchObject({ code: 'renderer_failed' })
    expect(statuses).toEqual([500, 500])
  })
})

describe('§18.97 an agent whose reply can’t be recorded', () => {
  const failing = (agent: AgentFunction<AgentTask>) => {
    const gateway = createGateway()
    const writes: number[] = []
    const record: PlayRecorder = {
      conversation: async () => {},
      observation: async () => {},
      async reply() {
        writes.push(writes.length)
        if (writes.length === 2) throw new StoreError('the disk is full')
      },
    }
    const play = async () => {
      const episode = await openFirst(sourceOf(gateway, agent))
      const policy = { sampler: byteSampler(['x']), renderer: byteRenderer(), sampling: {} }
      const { signal } = new AbortController()
      try {
        return await episode.play(policy, { signal, seed: 1, limits: {}, record })
      } finally {
        await episode.close()
      }
    }
    return { play, writes }
  }

  test('gets no more replies, and its play fails through no fault of its own, whatever it does about it', async () => {
    const statuses: number[] = []
    const { play, writes } = failing(async (_, context) => {
      for (const words of ['one', 'two', 'three']) {
        const { status } = await ask(context, words)
        statuses.push(status)
      }
      return 1
    })
    await expect(play()).rejects.toMatchObject({ code: 'record_failed' })
    expect(statuses).toEqual([200, 500, 500])
    expect(writes).toHaveLength(2)
  })

  test('clients are told not to try again', async () => {
    const heads: (string | null)[] = []
    const { play } = failing(async (_, { model }) => {
      for (const words of ['one', 'two']) {
        const response = await model.fetch(`${model.baseURL}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${model.apiKey}` },
          body: JSON.stringify({ messages: [user(words)] }),
        })
        heads.push(response.headers.get('x-should-retry'))
        if (!response.ok) throw new Error('the agent gives up')
      }
    })
    await expect(play()).rejects.toMatchObject({ code: 'record_failed' })
    expect(heads).toEqual([null, 'false'])
  })
})
