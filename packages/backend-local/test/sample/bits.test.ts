import { describe, expect, test } from 'vitest'

import { uniform } from '../../src/random.ts'
import type { Program } from '../../src/runtime/executor.ts'
import { BLOCK, extendGraph } from '../../src/sample/graph.ts'
import { createPolicy, type Policy, type Reply, type SampleTask } from '../../src/sample/policy.ts'
import { testTrainer, freshState, shape, testExecutor } from '../support/engine.ts'

/** What a request gives depends on the request alone, bit for bit. */

const executor = await testExecutor()
const once = (withPrefix: boolean) => {
  let program: Promise<Program> | undefined
  return () => (program ??= executor.load(extendGraph(shape, withPrefix), { threads: 1 }))
}
const programs = { plain: once(false), prefixed: once(true) }
const { weights } = freshState()

function freshPolicy(options: { cacheBytes?: number; maxRows?: number } = {}): Policy {
  const { cacheBytes = 2 ** 24, maxRows = 128 } = options
  return createPolicy({
    shape,
    weights,
    programs,
    cacheBytes,
    maxRows,
    bytesOf: (id) => Uint8Array.of(id),
  })
}

async function drive<T>(policy: Policy, work: Promise<T>): Promise<T> {
  const state = { done: false }
  const finished = work.finally(() => {
    state.done = true
  })
  while (!state.done) {
    await policy.advance()
    await new Promise(setImmediate)
  }
  return finished
}

const call = { cancelled: () => false }

function ids(length: number, stream: number): Int32Array {
  return Int32Array.from({ length }, (_, at) =>
    Math.floor(uniform(21, stream, at) * shape.vocabularySize),
  )
}

function joined(...parts: readonly Int32Array[]): Int32Array {
  return Int32Array.from(parts.flatMap((part) => [...part]))
}

function task(prompt: Int32Array, seed: number, more: Partial<SampleTask> = {}): SampleTask {
  return {
    prompt,
    shared: 0,
    maxTokens: 12,
    stop: { tokens: [], strings: [] },
    temperature: 1,
    topK: 0,
    topP: 1,
    seeds: [seed],
    ...more,
  }
}

async function replyTo(policy: Policy, request: SampleTask): Promise<Reply> {
  return (await drive(policy, policy.sample(request, call)))[0]!
}

const system = ids(70, 0)
const request = task(joined(system, ids(19, 1)), 5, { shared: 70 })

function stranger(nth: number): SampleTask {
  const prompt = joined(system, ids(3 + 7 * nth, 2 + nth))
  return task(prompt, nth, { shared: 70, maxTokens: 4 + (nth % 9) })
}

/** Two turns, the second with a policy that may be another. */
async function turns(policy: Policy, second: () => Policy): Promise<readonly Reply[]> {
  const reply = await replyTo(policy, request)
  const next = joined(request.prompt, reply.ids, ids(23, 30))
  return [reply, await replyTo(second(), { ...request, prompt: next, seeds: [8] })]
}

describe('among strangers', () => {
  test('a request gets the same ids and bytes in every place of the batch', async () => {
    const alone = await replyTo(freshPolicy(), request)
    for (let place = 0; place < 9; place += 1) {
      const policy = freshPolicy()
      const others = Array.from({ length: 8 }, (_, nth) => stranger(nth))
      const all = others.toSpliced(place, 0, request)
      const replies = await drive(policy, Promise.all(all.map((it) => policy.sample(it, call))))
      expect(replies[place]![0]).toEqual(alone)
    }
  })

  test('it may wait for a place, come late, or find the batch changing', async () => {
    const alone = await replyTo(freshPolicy(), request)
    const policy = freshPolicy({ maxRows: 3 })
    const early = Array.from({ length: 5 }, (_, nth) =>
      policy.sample(task(ids(40, 50 + nth), nth), call),
    )
    for (let step = 0; step < 5; step += 1) await policy.advance()
    const late = policy.sample(request, call)
    await drive(policy, Promise.all([...early, late]))
    expect((await late)[0]).toEqual(alone)
  })

  test('each of n samples is the one that its seed gives alone', async () => {
    const policy = freshPolicy()
    const many = await drive(policy, policy.sample({ ...request, seeds: [5, 6, 7] }, call))
    expect(many[0]).toEqual(await replyTo(freshPolicy(), request))
    expect(many[2]).toEqual(await replyTo(freshPolicy(), { ...request, seeds: [7] }))
  })
})

describe('over turns', () => {
  test('a prompt that goes on from what is cached gets the bytes of one that is read anew', async () => {
    const policy = freshPolicy()
    const cached = await turns(policy, () => policy)
    expect(await turns(freshPolicy(), freshPolicy)).toEqual(cached)
  })

  test('a cache too small to keep anything changes no byte', async () => {
    const policy = freshPolicy({ cacheBytes: 0 })
    const kept = freshPolicy()
    expect(await turns(policy, () => policy)).toEqual(await turns(kept, () => kept))
  })

  test('sampled log-probabilities are, to the bit, those of scoring the whole at once', async () => {
    const policy = freshPolicy()
    const reply = await replyTo(policy, { ...request, maxTokens: 3 * BLOCK })
    const whole = joined(request.prompt, reply.ids)
    const scored = new Float32Array(whole.length)
    const visit = (position: number, logprobs: Float32Array) => {
      if (position + 1 < whole.length) scored[position + 1] = logprobs[whole[position + 1]!]!
    }
    await drive(policy, policy.score(whole, 70, call, visit))
    expect(scored.slice(request.prompt.length)).toEqual(reply.logprobs)
  })

  test('the learner gives them too, within 1e-4', async () => {
    const reply = await replyTo(freshPolicy(), { ...request, maxTokens: 3 * BLOCK })
    const whole = joined(request.prompt, reply.ids)
    const length = whole.length - 1
    const data = {
      lengths: Int32Array.of(length),
      tokens: whole.slice(0, -1),
      targets: whole.slice(1),
      weights: new Float32Array(length),
    }
    const { logprobs } = await testTrainer({ executor }).forward(data, { name: 'cross_entropy' })
    const own = logprobs.slice(request.prompt.length - 1)
    own.forEach((p, at) => expect(Math.abs(p - reply.logprobs[at]!)).toBeLessThan(1e-4))
  })
})

describe('shared prefixes', () => {
  test('more of them than are kept ready change no byte, nor do others in between', async () => {
    const alone = await replyTo(freshPolicy(), request)
    const policy = freshPolicy()
    expect(await replyTo(policy, request)).toEqual(alone)
    const others = Array.from({ length: 12 }, (_, nth) =>
      task(ids(50, 100 + nth), nth, { shared: 40, maxTokens: 3 }),
    )
    await drive(policy, Promise.all(others.map((it) => policy.sample(it, call))))
    expect(await replyTo(policy, request)).toEqual(alone)
  })
})

describe('leaving', () => {
  test('a cancelled request leaves at the next step and the rest go on', async () => {
    const policy = freshPolicy()
    const state = { cancelled: false }
    const tokens: number[] = []
    void policy.sample(
      { ...request, maxTokens: 100 },
      { cancelled: () => state.cancelled, onToken: (_, id) => tokens.push(id) },
    )
    const other = policy.sample(request, call)
    while (tokens.length < 4) {
      await policy.advance()
      await new Promise(setImmediate)
    }
    state.cancelled = true
    expect((await drive(policy, other))[0]).toEqual(await replyTo(freshPolicy(), request))
    await policy.advance()
    expect(policy.busy).toBe(false)
    expect(tokens.length).toBeLessThan(7)
  })
})
