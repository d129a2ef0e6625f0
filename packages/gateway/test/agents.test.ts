import { describe, expect, test } from 'vitest'

import { createGateway, type AgentContext, type AgentTask } from '../src/index.ts'
import { ask, sourceOf } from './support/agent.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { recorded, toolResult, user } from './support/harness.ts'
import { openFirst, playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

async function crash(_: AgentTask, context: AgentContext): Promise<void> {
  await ask(context)
  throw new Error('bad arguments')
}

describe('an agent function', () => {
  test('is given task, policy and seed, and its number is the reward', async () => {
    const gateway = createGateway()
    const source = sourceOf(gateway, async (task, context) => {
      expect(task.id).toBe('a')
      expect(context.seed).toBe(5)
      await ask(context)
      return 0.5
    })
    const { end, outcome, record } = await playFirst(source, byteSampler(['hi']))
    expect(end).toEqual({ kind: 'completed' })
    expect(outcome.scores).toEqual({ reward: { value: 0.5 } })
    expect(outcome.metrics).toMatchObject({ calls: 1, no_calls: 0, forks: 0 })
    expect(record.log).toEqual(['conversation 1', 'reply'])
  })

  test('is scored by verifiers that see its output, beside its own rewards', async () => {
    const source = sourceOf(
      createGateway(),
      async (_, context) => {
        await ask(context)
        context.reward({ name: 'style', value: 0.2 })
        return { output: { answer: 42 } }
      },
      {
        rewards: ['style'],
        verifiers: {
          right: ({ output }: { output: { answer: number } }) => (output.answer === 42 ? 1 : 0),
          unsure: () => ({ unscored: 'no idea' }),
        },
      },
    )
    expect(source.steps).toEqual(['style', 'right', 'unsure'])
    const { outcome } = await playFirst(source, byteSampler(['hi']))
    expect(outcome.scores).toEqual({
      style: { value: 0.2 },
      right: { value: 1 },
      unsure: { unscored: 'no idea' },
    })
  })

  test('§18.76 F23 that throws before any call has failed, as an agent, without replies', async () => {
    const source = sourceOf(createGateway(), async () => {
      throw new TypeError('undefined is not a function')
    })
    const { end, record } = await playFirst(source, byteSampler(['hi']))
    expect(end).toMatchObject({ kind: 'failed', phase: 'agent', error: { name: 'TypeError' } })
    expect(record.replies).toEqual([])
  })

  test('§18.77 that throws after calls has failed too, unless crashes are scored', async () => {
    const failed = await playFirst(sourceOf(createGateway(), crash), byteSampler(['hi']))
    expect(failed.end.kind).toBe('failed')
    const verifiers = { done: () => 0 }
    const scoring = sourceOf(createGateway(), crash, { onAgentError: 'score', verifiers })
    const scored = await playFirst(scoring, byteSampler(['hi']))
    expect(scored.end).toEqual({ kind: 'completed' })
    expect(scored.outcome.scores).toEqual({ done: { value: 0 } })
  })

  test('that says itself how it ended has ended so', async () => {
    const saying = (body: object) =>
      sourceOf(
        createGateway(),
        async (_, { model }) => {
          await model.fetch(`${model.baseURL}/rollout/end`, {
            method: 'POST',
            headers: { authorization: `Bearer ${model.apiKey}` },
            body: JSON.stringify(body),
          })
        },
        { verifiers: { said: ({ output }: { output: unknown }) => (output === '42' ? 1 : 0) } },
      )
    const failed = await playFirst(saying({ status: 'failed', error: 'no disk' }), byteSampler([]))
    expect(failed.end).toMatchObject({ kind: 'failed', phase: 'agent' })
    expect(JSON.stringify(failed.end)).toContain('no disk')
    const done = await playFirst(saying({ output: '42' }), byteSampler([]))
    expect(done.end).toEqual({ kind: 'completed' })
    expect(done.outcome.scores).toEqual({ said: { value: 1 } })
  })

  test('§18.78 that makes no call is counted, and its verifier runs all the same', async () => {
    const source = sourceOf(createGateway(), async () => {}, { verifiers: { done: () => 0 } })
    const { end, outcome, record } = await playFirst(source, byteSampler(['hi']))
    expect(end).toEqual({ kind: 'completed' })
    expect(outcome.metrics).toMatchObject({ calls: 0, no_calls: 1 })
    expect(outcome.scores).toEqual({ done: { value: 0 } })
    expect(record.replies).toEqual([])
  })

  test('§18.79 §18.80 that hangs is left at its deadline; its later calls and rewards change nothing', async () => {
    const deadline = new AbortController()
    let late: (() => Promise<unknown>) | undefined
    const source = sourceOf(createGateway(), async (_, context) => {
      await ask(context)
      late = async () => ({
        call: (await ask(context, 'late')).status,
        reward: (() => {
          try {
            return context.reward({ value: 1 })
          } catch (error) {
            return (error as { code: string }).code
          }
        })(),
      })
      deadline.abort(new Error('time is up'))
      await new Promise(() => {})
    })
    const { end, record, outcome } = await playFirst(source, byteSampler(['hi']), {
      signal: deadline.signal,
    })
    expect(end).toEqual({ kind: 'cut', by: 'episode_time' })
    expect(await late!()).toEqual({ call: 403, reward: 'rollout_closed' })
    expect(record.replies).toHaveLength(1)
    expect(outcome.scores['reward']).toHaveProperty('unscored')
  })

  test('§18.82 whose prompt does not fit is told in words that clients know, and is cut if it gives up', async () => {
    const sampler = byteSampler(['hi'], { contextWindow: 12 })
    let message = ''
    const giveUp = sourceOf(createGateway(), async (_, { model }) => {
      const response = await model.fetch(`${model.baseURL}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${model.apiKey}` },
        body: JSON.stringify({ messages: [user('far too long for it')] }),
      })
      const { error } = (await response.json()) as { error: { message: string; code: string } }
      expect(error.code).toBe('context_length_exceeded')
      message = error.message
      throw new Error(message)
    })
    expect((await playFirst(giveUp, sampler)).end).toEqual({ kind: 'cut', by: 'context_window' })
    expect(message).toContain('prompt is too long')
    expect(message).toContain('maximum context length is 12')
    const compact = sourceOf(createGateway(), async (_, context) => {
      expect((await ask(context, 'far too long for it')).status).toBe(400)
      expect((await ask(context, 'ok')).status).toBe(200)
      return 1
    })
    expect((await playFirst(compact, sampler)).end).toEqual({ kind: 'completed' })
  })

  test.each([
    ['replies', { replies: 2 }],
    ['sampled_tokens', { sampledTokens: 6 }],
  ] as const)('§18.83 that uses up its %s is refused, cut and scored', async (by, limits) => {
    const source = sourceOf(
      createGateway(),
      async (_, context) => {
        const statuses = [await ask(context, '1'), await ask(context, '2'), await ask(context, '3')]
        expect(statuses.map(({ status }) => status)).toEqual([200, 200, 400])
      },
      { verifiers: { done: () => 0.5 } },
    )
    const { end, outcome } = await playFirst(source, byteSampler(['hi']), { limits })
    expect(end).toEqual({ kind: 'cut', by })
    expect(outcome.scores).toEqual({ done: { value: 0.5 } })
  })

  test('§18.83 gets no more replies by asking for several at once, and answers count once', async () => {
    const source = sourceOf(createGateway(), async (_, { model }) => {
      const post = async (body: object) => {
        const response = await model.fetch(`${model.baseURL}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${model.apiKey}` },
          body: JSON.stringify(body),
        })
        return response.status
      }
      const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }
      const asked = [
        user('go'),
        { role: 'assistant', content: null, tool_calls: [call] },
        toolResult('c1', 'seen'),
      ]
      expect(await post({ messages: asked })).toBe(200)
      expect(await post({ messages: asked })).toBe(200)
      expect(await post({ messages: [user('go')], n: 3 })).toBe(400)
      expect(await post({ messages: [user('go')], n: 2 })).toBe(200)
    })
    const { end, record } = await playFirst(source, byteSampler(['hi']), {
      limits: { replies: 4, toolCalls: 1 },
    })
    expect(end).toEqual({ kind: 'completed' })
    expect(record.replies).toHaveLength(4)
  })

  test('§18.84 whose verifier throws has no score: the scoring rejects, and can be asked again', async () => {
    let times = 0
    const verifiers = {
      done: () => {
        times += 1
        if (times === 1) throw new Error('grader is down')
        return 1
      },
    }
    const episode = await openFirst(sourceOf(createGateway(), async () => {}, { verifiers }))
    const policy = { sampler: byteSampler(['hi']), renderer: byteRenderer(), sampling: {} }
    const { signal } = new AbortController()
    const end = await episode.play(policy, { signal, seed: 1, limits: {}, record: recorded() })
    await episode.end(end)
    await expect(episode.score(signal)).rejects.toThrow('grader is down')
    expect((await episode.score(signal)).scores).toEqual({ done: { value: 1 } })
    await episode.close()
  })

  test('§18.87 that is cancelled stops what is sampled for it', async () => {
    const abort = new AbortController()
    const sampler = byteSampler(['hi'], {
      before: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal!.addEventListener('abort', () => reject(signal!.reason as Error))
          abort.abort(new Error('stop'))
        }),
    })
    const gateway = createGateway()
    const { record } = await playFirst(
      sourceOf(gateway, async (_, context) => void (await ask(context))),
      sampler,
      { signal: abort.signal },
    )
    expect(record.replies).toEqual([])
    expect(gateway.counts).toMatchObject({ open: 0, inFlight: 0 })
  })
})
