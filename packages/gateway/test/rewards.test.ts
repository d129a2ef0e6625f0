import { isScored, type Score } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { createGateway } from '../src/index.ts'
import { ask, sourceOf } from './support/agent.ts'
import { playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

function valueOf(score: Score | undefined): number | undefined {
  return score !== undefined && isScored(score) ? score.value : undefined
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

  test('that an agent returns where none has a name are told what to do', async () => {
    const source = sourceOf(createGateway(), async () => 0.5, { verifiers: { done: () => 1 } })
    const { end } = await playFirst(source, byteSampler(['hi']))
    expect(end).toMatchObject({
      kind: 'failed',
      error: { message: expect.stringContaining("set rewards: ['reward']") },
    })
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

  test('§18.70 that are final end the attempt in the same process too', async () => {
    const late: unknown[] = []
    const source = sourceOf(createGateway(), async (_, context) => {
      await ask(context)
      context.reward({ value: 1, final: true })
      late.push((await ask(context, 'late')).status)
      expect(() => context.reward({ value: 0 })).toThrow('has ended')
    })
    const { outcome, record, end } = await playFirst(source, byteSampler(['hi']))
    expect(late).toEqual([403])
    expect(record.replies).toHaveLength(1)
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
    expect(outcome.scores).toEqual({
      firsts: { value: 1 },
      reward: { value: 1, note: 'sum of 1 for reply 0' },
    })
  })

  test('§18.68 for calls, branches and agents add up to the rollout’s, and are told apart in the record', async () => {
    const source = sourceOf(
      createGateway(),
      async (_, context) => {
        const first = await ask(context, 'one')
        const second = await ask({ ...context, model: context.as('critic') }, 'two')
        context.reward({ value: 1, target: `call:${first.id}` })
        context.reward({ value: 5, target: `branch:${second.id}` })
        context.reward({ value: 0.5, target: `branch:${second.id}` })
        context.reward({ value: -0.25, target: 'agent:critic' })
        context.reward({ name: 'style', value: 1, target: `call:${first.id}` })
        context.reward({ name: 'style', value: null, target: `call:${second.id}`, reason: 'odd' })
        context.reward({ name: 'whole', value: 3, target: `call:${first.id}` })
        context.reward({ name: 'whole', value: 0 })
      },
      { rewards: ['reward', 'style', 'whole', 'none'] },
    )
    const { outcome } = await playFirst(source, byteSampler(['hi']))
    expect(outcome.scores).toEqual({
      reward: {
        value: 1.25,
        note: 'sum of 1 for reply 0, 0.5 for the branch to reply 1, -0.25 for agent critic',
      },
      style: { unscored: 'reply 1: odd' },
      whole: { value: 0 },
      none: { unscored: 'no reward was given' },
    })
  })

  test('for calls leave later calls trained: the rollout has no reward yet', async () => {
    const source = sourceOf(createGateway(), async (_, context) => {
      const { id } = await ask(context, 'one')
      context.reward({ value: 1, target: `call:${id}` })
      await ask(context, 'two')
    })
    const { record } = await playFirst(source, byteSampler(['hi']))
    expect(record.replies.map(({ trained }) => trained)).toEqual([true, true])
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
