import {
  ConfigError,
  isScored,
  NotFoundError,
  StoreError,
  type PlayRecorder,
  type Score,
} from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import {
  agentSource,
  createGateway,
  type AgentContext,
  type AgentFunction,
  type AgentTask,
  type Gateway,
} from '../src/index.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { postTo, user } from './support/harness.ts'
import { openFirst, playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

async function ask(
  { model }: AgentContext,
  words = 'go',
): Promise<{ readonly status: number; readonly id: string }> {
  const response = await model.fetch(`${model.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${model.apiKey}` },
    body: JSON.stringify({ model: model.name, messages: [user(words)] }),
  })
  const { id } = (await response.json()) as { id: string }
  return { status: response.status, id }
}

const tasks = [{ id: 'a' }, { id: 'b' }]

function sourceOf(gateway: Gateway, agent: AgentFunction<AgentTask>, more: object = {}) {
  return agentSource({ gateway, agent, tasks, ...more })
}

function valueOf(score: Score | undefined): number | undefined {
  return score !== undefined && isScored(score) ? score.value : undefined
}

async function crash(_: AgentTask, context: AgentContext): Promise<void> {
  await ask(context)
  throw new Error('bad arguments')
}

async function giving(bodies: readonly object[], rewards = ['reward', 'style']) {
  const answers: { status: number; code?: string }[] = []
  const source = sourceOf(
    createGateway(),
    async (_, { model }) => {
      for (const body of bodies) {
        const response = await model.fetch(`${model.baseURL}/rollout/reward`, {
          method: 'POST',
          headers: { authorization: `Bearer ${model.apiKey}` },
          body: JSON.stringify(body),
        })
        const { error } = (await response.json()) as { error?: { code: string } }
        answers.push({
          status: response.status,
          ...(error === undefined ? {} : { code: error.code }),
        })
      }
    },
    { rewards },
  )
  return { answers, ...(await playFirst(source, byteSampler(['hi']))) }
}

async function one(): Promise<number> {
  return 1
}

function versionOf(response: Response): string | null {
  return response.headers.get('x-tiltyard-policy-version')
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

  test('§18.84 whose verifier throws has no score: the scoring rejects, and can be asked again', async () => {
    let times = 0
    const verifiers = {
      done: () => {
        times += 1
        if (times === 1) throw new Error('grader is down')
        return 1
      },
    }
    const source = sourceOf(createGateway(), async () => {}, { verifiers })
    await expect(playFirst(source, byteSampler(['hi']))).rejects.toThrow('grader is down')
    expect((await playFirst(source, byteSampler(['hi']))).outcome.scores).toEqual({
      done: { value: 1 },
    })
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
})

describe('rewards', () => {
  test('come by the endpoint, under names that are known', async () => {
    const { answers, outcome } = await giving([
      { value: 1 },
      { name: 'style', value: 0.5 },
      { name: 'stile', value: 1 },
    ])
    expect(answers).toMatchObject([{ status: 200 }, { status: 200 }, { status: 400 }])
    expect(outcome.scores).toEqual({ reward: { value: 1 }, style: { value: 0.5 } })
  })

  test('§18.69 are never summed: the same changes nothing, another takes its place and is counted', async () => {
    const { outcome } = await giving([{ value: 1 }, { value: 1 }, { value: 0.25 }])
    expect(outcome.scores['reward']).toEqual({ value: 0.25 })
    expect(outcome.metrics['replaced_rewards']).toBe(1)
  })

  test('§18.72 may say that there is none, which is not zero', async () => {
    const { outcome } = await giving([
      { value: null, reason: 'the site was down' },
      { name: 'style', value: 0 },
    ])
    expect(outcome.scores).toEqual({
      reward: { unscored: 'the site was down' },
      style: { value: 0 },
    })
  })

  test('§18.73 that are no finite numbers are refused', async () => {
    const { answers } = await giving([{ value: 'NaN' }, {}])
    expect(answers).toMatchObject([{ status: 400 }, { status: 400 }])
    const source = sourceOf(createGateway(), async (_, context) => {
      expect(() => context.reward({ value: Number.NaN })).toThrow('finite')
      return Number.POSITIVE_INFINITY
    })
    const { outcome } = await playFirst(source, byteSampler(['hi']))
    expect(valueOf(outcome.scores['reward'])).toBeUndefined()
  })

  test('§18.70 that are final end the attempt: no call and no reward comes after', async () => {
    const { answers, outcome, end } = await giving([{ value: 1, final: true }, { value: 0 }])
    expect(answers).toEqual([{ status: 200 }, { status: 403, code: 'rollout_closed' }])
    expect(outcome.scores['reward']).toEqual({ value: 1 })
    expect(end).toEqual({ kind: 'completed' })
  })

  test('§18.68 reach exactly the call that they name, whatever ran meanwhile', async () => {
    const source = sourceOf(
      createGateway(),
      async (_, context) => {
        const first = await ask(context, 'one')
        const second = ask(context, 'two')
        context.reward({ value: 1, target: `call:${first.id}` })
        await second
        expect(() => context.reward({ value: 1, target: 'call:none' })).toThrow('no call')
        expect(() => context.reward({ value: 1, target: 'agent:none' })).toThrow('no agent')
      },
      {
        rewards: ['reward'],
        verifiers: {
          firsts: ({
            attempt,
          }: {
            attempt: {
              rewards: { rewards: readonly { target: string }[] }
              calls: readonly { id: string }[]
            }
          }) =>
            attempt.rewards.rewards.filter(
              ({ target }) => target === `call:${attempt.calls[0]!.id}`,
            ).length,
        },
      },
    )
    const { outcome } = await playFirst(source, byteSampler(['hi']))
    expect(outcome.scores).toMatchObject({
      firsts: { value: 1 },
      reward: { unscored: expect.any(String) },
    })
  })

  test('§18.71 calls after a reward for the rollout are not trained', async () => {
    const source = sourceOf(createGateway(), async (_, context) => {
      await ask(context, 'one')
      context.reward({ value: 1 })
      await ask(context, 'two')
    })
    const { record } = await playFirst(source, byteSampler(['hi']))
    expect(record.replies.map(({ trained }) => trained)).toEqual([true, false])
  })
})

describe('an agent source', () => {
  test('lists its splits in order, and tells a wrong one which there are', async () => {
    const source = agentSource({
      gateway: createGateway(),
      agent: async () => 1,
      tasks: { train: [tasks[0]!], dev: [tasks[1]!] },
    })
    const ids = async (split: string) => {
      const found: string[] = []
      for await (const { id } of source.tasks(split)) found.push(id)
      return found
    }
    expect([await ids('all'), await ids('train'), await ids('dev')]).toEqual([
      ['a', 'b'],
      ['a'],
      ['b'],
    ])
    await expect(ids('trainn')).rejects.toThrow(NotFoundError)
    await expect(ids('trainn')).rejects.toThrow('did you mean "train"?')
  })

  test('has another fingerprint when tasks, version or scoring change', () => {
    const gateway = createGateway()
    const base = agentSource({ gateway, agent: one, tasks })
    expect(agentSource({ gateway, agent: one, tasks }).fingerprint).toBe(base.fingerprint)
    const others = [
      agentSource({ gateway, agent: one, tasks: [{ id: 'a' }] }),
      agentSource({ gateway, agent: one, tasks, version: '2' }),
      agentSource({ gateway, agent: one, tasks, verifiers: { done: () => 1 } }),
    ]
    expect(new Set([base, ...others].map(({ fingerprint }) => fingerprint)).size).toBe(4)
  })

  test('refuses unknown options, doubled ids and no tasks', () => {
    const gateway = createGateway()
    expect(() => agentSource({ gateway, agent: one, tasks: [] })).toThrow(ConfigError)
    expect(() => agentSource({ gateway, agent: one, tasks: [{ id: 'a' }, { id: 'a' }] })).toThrow(
      'unique',
    )
    const wrong = { gateway, agent: one, tasks, verifier: {} }
    expect(() => agentSource(wrong)).toThrow('did you mean "verifiers"?')
  })
})

test('§18.90 §18.91 §18.92 a new version serves calls that come after it; the old one ends its own, and is then let go', async () => {
  const released: string[] = []
  const { deferred } = await import('../src/waiting.ts')
  const held = deferred<void>()
  const policy = (step: number, before?: () => Promise<void>) => ({
    sampler: byteSampler([`v${step}`], { step, ...(before === undefined ? {} : { before }) }),
    renderer: byteRenderer(),
    sampling: {},
  })
  const gateway = createGateway()
  gateway.publish(
    'policy',
    policy(1, () => held.promise),
    () => released.push('v1'),
  )
  const latest = gateway.open({ rollout: 'latest', policy: { alias: 'policy', mode: 'latest' } })
  const pinned = gateway.open({ rollout: 'pinned', policy: { alias: 'policy' } })
  const call = (attempt: typeof latest) =>
    postTo(gateway, `${gateway.baseURL(attempt)}/chat/completions`, attempt.key, {
      messages: [user('go')],
    })
  const before = call(latest)
  await new Promise(setImmediate)
  gateway.publish('policy', policy(2), () => released.push('v2'))
  const after = await call(latest)
  const still = call(pinned)
  held.resolve()
  expect([versionOf(await before), versionOf(after), versionOf(await still)]).toEqual([
    'v1',
    'v2',
    'v1',
  ])
  expect(latest.calls.map(({ version }) => version.step)).toEqual([1, 2])
  expect(released).toEqual([])
  await pinned.close()
  expect(released).toEqual(['v1'])
})

test('§18.89 §18.95 a hundred versions behind one address; an evaluation’s settings never reach a training call', async () => {
  const gateway = createGateway()
  const renderer = byteRenderer()
  const evaluated = byteSampler(['e'])
  const evaluation = gateway.open({
    rollout: 'eval',
    policy: { sampler: evaluated, renderer, sampling: { temperature: 0.25 } },
  })
  const origin = gateway.origin
  for (let step = 0; step < 100; step += 1) {
    const sampler = byteSampler(['t'], { step })
    gateway.publish('policy', { sampler, renderer, sampling: {} })
    const attempt = gateway.open({ rollout: `train ${step}`, policy: { alias: 'policy' } })
    const bodies = [attempt, evaluation].map((it) =>
      postTo(gateway, `${gateway.baseURL(it)}/chat/completions`, it.key, {
        messages: [user('go')],
      }),
    )
    expect((await Promise.all(bodies)).map(({ status }) => status)).toEqual([200, 200])
    expect(sampler.seen[0]!.request.temperature).toBeUndefined()
    expect(attempt.calls[0]!.version.step).toBe(step)
    await attempt.close()
  }
  expect(gateway.origin).toBe(origin)
  expect(evaluated.seen.every(({ request }) => request.temperature === 0.25)).toBe(true)
})

test('a frozen partner answers under its own alias, and is never trained', async () => {
  const partner = byteSampler(['partner'], { step: 9 })
  const gateway = createGateway({
    policies: { partner: { sampler: partner, renderer: byteRenderer(), sampling: {} } },
  })
  const source = sourceOf(gateway, async (_, { model }) => {
    for (const name of [model.name, 'partner'])
      await model.fetch(`${model.baseURL}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${model.apiKey}` },
        body: JSON.stringify({ model: name, messages: [user('go')] }),
      })
  })
  const { record } = await playFirst(source, byteSampler(['own']))
  expect(record.replies.map(({ trained, version }) => [trained, version.step])).toEqual([
    [true, 0],
    [false, 9],
  ])
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
