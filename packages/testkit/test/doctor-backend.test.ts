import {
  StateError,
  type Backend,
  type Learner,
  type PublishOptions,
  type Sampler,
} from '@tiltyard/core'
import { expect, test } from 'vitest'

import {
  bigramBackend,
  bigramText,
  planBackendCheck,
  runCases,
  type CaseResult,
  type ConformanceCase,
} from '../src/index.ts'

async function all(cases: readonly ConformanceCase[], atOnce: number) {
  const results: CaseResult[] = []
  for await (const result of runCases(cases, { atOnce })) results.push(result)
  return results
}

/** A client of one service for all, as a live one is: closing it closes what it made, and no more. */
function clientOf(service: Backend): Backend {
  const made: (Learner | Sampler)[] = []
  let closed = false
  const own = async <T extends Learner | Sampler>(make: () => Promise<T>): Promise<T> => {
    if (closed) throw new StateError('the client is closed')
    const it = await make()
    made.push(it)
    return it
  }
  return {
    ...service,
    sampler: (ref) => own(() => service.sampler(ref)),
    async learner(options) {
      const learner = await own(() => service.learner(options))
      return Object.defineProperties({} as Learner, {
        ...Object.getOwnPropertyDescriptors(learner),
        publish: { value: (as: PublishOptions) => own(() => learner.publish(as)) },
      })
    },
    async close() {
      closed = true
      for (const it of made) await it.close()
    },
  }
}

test('a check of a backend costs no more than it says, and leaves nothing behind', async () => {
  const stored = bigramBackend()
  const learner = await stored.learner({ model: 'bigram', adaptation: 'full' })
  await learner.save('of others')
  const check = await planBackendCheck({ create: () => clientOf(stored), decode: bigramText })
  expect(check.used).toEqual(Object.fromEntries(Object.keys(check.used).map((key) => [key, 0])))
  const results = await all(check.cases, 3)
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
  for (const [kind, bound] of Object.entries(check.atMost)) {
    const used = check.used[kind as keyof typeof check.used]
    expect(used, kind).toBeGreaterThan(0)
    expect(used, kind).toBeLessThanOrEqual(bound)
  }
  // Small enough for a service that charges.
  const { learners, checkpoints, ...tokens } = check.atMost
  expect(Object.values(tokens).reduce((sum, count) => sum + count, 0)).toBeLessThan(20_000)
  expect(learners).toBeLessThan(100)
  expect(checkpoints).toBeLessThan(20)
  await check.stop()
  expect((await stored.checkpoints().list()).map(({ name }) => name)).toEqual(['of others'])
})

test('what a service says that it lacks is left out with its words, and costs nothing', async () => {
  const create = (): Backend => {
    const inner = bigramBackend()
    const describe = async () => ({
      ...(await inner.describe()),
      mask: false,
      losses: ['cross_entropy', 'ppo'] as const,
    })
    return { ...inner, describe }
  }
  const whole = await planBackendCheck({ create: () => bigramBackend() })
  const part = await planBackendCheck({ create, lacks: { clipNorm: 'as I was told' } })
  const reasons = new Set(part.cases.map(({ skip }) => skip))
  expect([...reasons]).toEqual([
    undefined,
    'the model’s tokenizer wasn’t given',
    'the service says that it has no importance_sampling',
    'the service says that it has no cispo',
    'the service says that it has no dro',
    'as I was told',
  ])
  expect(part.atMost.trainedTokens).toBeLessThan(whole.atMost.trainedTokens)
  const results = await all(part.cases, 1)
  expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([])
})

test('a model that isn’t there, or none of many, is a mistake that names those that are', async () => {
  const create = (): Backend => {
    const inner = bigramBackend()
    const describe = async () => {
      const described = await inner.describe()
      const [model] = described.models
      return { ...described, models: [model!, { ...model!, name: 'other' }] }
    }
    return { ...inner, describe }
  }
  await expect(planBackendCheck({ create })).rejects.toThrow('the service has bigram, other')
  await expect(planBackendCheck({ create, model: 'otter' })).rejects.toThrow('other')
})

test('a check that is stopped ends its cases, and begins no more', async () => {
  const stopped = new AbortController()
  const hanging = (): Backend => {
    const inner = bigramBackend()
    let over: (error: Error) => void = () => {}
    const closed = new Promise<never>((_, reject) => {
      over = reject
    })
    closed.catch(() => {})
    return {
      ...inner,
      sampler: () => closed,
      async close() {
        over(new Error('closed'))
      },
    }
  }
  const check = await planBackendCheck({ create: hanging })
  const begun: string[] = []
  const cases = check.cases.map((it) => ({
    ...it,
    run: () => {
      begun.push(it.name)
      if (begun.length === 3) stopped.abort()
      return it.run()
    },
  }))
  stopped.signal.addEventListener('abort', () => void check.stop())
  const results: CaseResult[] = []
  for await (const result of runCases(cases, { atOnce: 2, signal: stopped.signal }))
    results.push(result)
  expect(results.length).toBeLessThan(3)
  expect(begun).toHaveLength(3)
})

test('cases run so many at once, and are told in their order', async () => {
  let running = 0
  let most = 0
  const release: (() => void)[] = []
  const one = (name: string): ConformanceCase => ({
    name,
    async run() {
      running += 1
      most = Math.max(most, running)
      await new Promise<void>((resolve) => {
        release.push(resolve)
        // The last to come lets go of the others, itself first.
        if (release.length === 2 || name === 'c')
          for (const go of release.splice(0).toReversed()) go()
      })
      running -= 1
      if (name === 'b') throw new Error('broken')
    },
  })
  const skipped: ConformanceCase = { name: 'left out', skip: 'lacking', run: async () => {} }
  const results = await all([one('a'), skipped, one('b'), one('c')], 2)
  expect(results.map(({ name, outcome }) => [name, outcome])).toEqual([
    ['a', 'passed'],
    ['left out', 'skipped'],
    ['b', 'failed'],
    ['c', 'passed'],
  ])
  expect(most).toBe(2)
})
