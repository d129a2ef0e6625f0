import { ConfigError, type JsonObject, type Score } from '@tiltyard/core'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'

import {
  bundleEnv,
  defineJudge,
  defineTool,
  type Verifier,
  type VerifierContext,
} from '../src/index.ts'
import { makeBundle } from './support/make-bundle.ts'
import { call, calls, never, quiet, says, scored, started, stepContext } from './support/play.ts'

const put = defineTool<{ readonly box: readonly string[] }, z.ZodObject<{ thing: z.ZodString }>>({
  name: 'put',
  parameters: z.object({ thing: z.string() }),
  run: ({ thing }, { universe }) => {
    universe.update((draft) => {
      draft.box.push(thing)
    })
  },
})

/** An env with one step for each verifier, under its name. */
async function envScored(
  verifiers: Readonly<Record<string, Verifier>>,
  manifest: Record<string, unknown> = {},
) {
  const bundle = await makeBundle({
    universe: { box: [] },
    module: { tools: [put], verifiers },
    manifest: {
      steps: Object.keys(verifiers).map((name) => ({ name, use: name, options: { of: name } })),
      ...manifest,
    },
    tasks: [
      {
        id: 'one',
        turns: [{ prompt: 'Put a pen into the box.' }],
        gold: { calls: [{ name: 'put', arguments: { thing: 'pen' } }] },
        expect: { thing: 'pen' },
      },
      { id: 'bare', turns: [{ prompt: 'x' }] },
    ],
  })
  return await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1 }))
}

describe('verifiers', () => {
  test('see the whole finished episode, its universe before and after, and what the gold would have done', async () => {
    let seen: VerifierContext | undefined
    let gold: unknown
    const env = await envScored({
      look: async (context) => {
        seen = context
        gold = await context.gold()
        return 1
      },
    })
    await env.step(calls(call('put', { thing: 'ink' })), stepContext())
    await env.step(says('Done.'), stepContext())
    await scored(env)
    expect(seen).toMatchObject({
      task: { id: 'one', expect: { thing: 'pen' } },
      options: { of: 'look' },
      end: { kind: 'completed' },
      answer: 'Done.',
      universe: {
        start: { box: [] },
        state: { box: ['ink'] },
        changes: [{ path: '/box/0', after: 'ink' }],
      },
    })
    expect(seen?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
    expect(seen?.replies).toHaveLength(2)
    expect(seen?.calls.map(({ name, result }) => [name, result])).toEqual([['put', 'ok']])
    expect(gold).toMatchObject({
      state: { box: ['pen'] },
      changes: [{ path: '/box/0', after: 'pen' }],
      calls: [{ name: 'put', result: 'ok' }],
    })
  })

  test('give numbers, true and false, notes, or say why there is no score', async () => {
    const given: Record<string, [unknown, Score]> = {
      half: [0.5, { value: 0.5 }],
      yes: [true, { value: 1 }],
      no: [false, { value: 0 }],
      noted: [
        { value: 2, note: 'twice' },
        { value: 2, note: 'twice' },
      ],
      none: [{ unscored: 'nobody asked' }, { unscored: 'nobody asked' }],
    }
    const verifiers = Object.fromEntries(
      Object.entries(given).map(([name, [verdict]]) => [name, () => verdict as number]),
    )
    const { scores } = await scored(await envScored(verifiers))
    expect(scores).toEqual(
      Object.fromEntries(Object.entries(given).map(([name, [, score]]) => [name, score])),
    )
  })

  test('F26, E28: one that fails is a failure with task and step, never a zero; another try runs only what failed', async () => {
    const good = vi.fn<() => number>(() => 1)
    const shaky = vi.fn<() => number>(() => 1)
    shaky.mockImplementationOnce(() => {
      throw new Error('rate limit')
    })
    const env = await envScored({ good, shaky })
    await env.end({ kind: 'completed' })
    await expect(env.score(quiet())).rejects.toMatchObject({
      code: 'VERIFIER',
      message: 'task "one": verifier of step "shaky" failed: rate limit',
    })
    expect((await env.score(quiet())).scores).toEqual({ good: { value: 1 }, shaky: { value: 1 } })
    expect(good).toHaveBeenCalledOnce()
    expect(shaky).toHaveBeenCalledTimes(2)
  })

  test.each([NaN, Infinity, -Infinity])('E28: %d is a failure of the verifier', async (value) => {
    const env = await envScored({ odd: () => value })
    await env.end({ kind: 'completed' })
    await expect(env.score(quiet())).rejects.toMatchObject({ code: 'VERIFIER' })
  })

  test.each([
    ['nothing', undefined, 'it gave undefined; expected a number'],
    ['null', null, 'it gave null; expected a number'],
    ['a text', 'good', 'it gave a string; expected a number'],
    ['another object', { score: 1 }, 'it gave an object with the keys score; expected a number'],
    ['a score in words', { value: '1' }, 'it gave an object with the keys value; expected'],
    ['no number', { value: Number.NaN }, 'it gave NaN, which is no finite number'],
  ])('one that gives %s is a failure that tells what it gave', async (_, verdict, told) => {
    const env = await envScored({ odd: () => verdict as never })
    await env.step(says('Done.'), stepContext())
    await expect(scored(env)).rejects.toThrow(`verifier of step "odd" failed: ${told}`)
  })

  test('F28: a wrong set-up stops the run: it is thrown as it is', async () => {
    const env = await envScored({
      lost: () => {
        throw new ConfigError('judge', [{ at: 'model', message: 'no such model' }])
      },
    })
    await env.end({ kind: 'completed' })
    await expect(env.score(quiet())).rejects.toMatchObject({ code: 'CONFIG' })
  })

  test('have a time limit of their own', async () => {
    const env = await envScored({ slow: never }, { limits: { verifierMs: 5 } })
    await env.end({ kind: 'completed' })
    await expect(env.score(quiet())).rejects.toThrow(
      'verifier of step "slow" failed: gave up waiting for verifier "slow" after 5 ms',
    )
  })

  test('end with the signal’s reason when the run stops', async () => {
    const stop = new AbortController()
    const env = await envScored({ slow: never })
    await env.end({ kind: 'completed' })
    const scoring = env.score(stop.signal)
    stop.abort(new Error('the run stops'))
    await expect(scoring).rejects.toThrow('the run stops')
  })

  test('asking for the gold of a task that has none is a failure that says so', async () => {
    const bundle = await makeBundle({
      module: { verifiers: { always: ({ gold }) => gold().then(() => 1) } },
    })
    const env = await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1 }))
    await env.end({ kind: 'completed' })
    await expect(env.score(quiet())).rejects.toThrow(`the step needs the task's gold`)
  })

  test('E5: judges run apart from the others, when the episode is closed', async () => {
    const order: string[] = []
    const env = await envScored({
      judged: defineJudge(({ answer, sandbox }) => {
        order.push('judge')
        return answer === 'Fine.' && sandbox === undefined
      }),
      checked: () => {
        order.push('verify')
        return 1
      },
    })
    await env.step(says('Fine.'), stepContext())
    await env.end({ kind: 'completed' })
    const outcome = await env.score(quiet())
    expect(outcome.scores).toEqual({ checked: { value: 1 } })
    await env.close()
    expect((await env.judge?.(outcome, quiet()))?.scores).toEqual({
      checked: { value: 1 },
      judged: { value: 1 },
    })
    expect(order).toEqual(['verify', 'judge'])
  })

  test('a bundle without judges has nothing to judge', async () => {
    expect('judge' in (await envScored({ checked: () => 1 }))).toBe(false)
  })
})

/** What a built-in verifier gives when a thing was put and an answer said. */
async function builtInScore(
  use: string,
  expectation: JsonObject,
  play: { readonly thing?: string; readonly answer?: string } = {},
) {
  const bundle = await makeBundle({
    universe: { box: [], 'a/b': { c: 1 } },
    module: { tools: [put] },
    manifest: { steps: [{ name: 'it', use }] },
    tasks: [
      {
        id: 'one',
        turns: [{ prompt: 'x' }],
        gold: { calls: [{ name: 'put', arguments: { thing: 'pen' } }] },
        expect: expectation,
      },
    ],
  })
  const env = await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1 }))
  if (play.thing !== undefined)
    await env.step(calls(call('put', { thing: play.thing })), stepContext())
  if (play.answer !== undefined) await env.step(says(play.answer), stepContext())
  return (await scored(env)).scores['it']
}

describe('built-in verifiers', () => {
  const right = { value: 1 }
  const wrong = { value: 0 }

  test('universeEqualsGold: as the gold leaves it, and nothing else', async () => {
    expect(await builtInScore('universeEqualsGold', {}, { thing: 'pen' })).toEqual(right)
    expect(await builtInScore('universeEqualsGold', {}, { thing: 'ink' })).toEqual(wrong)
    expect(await builtInScore('universeEqualsGold', {})).toEqual(wrong)
  })

  test('universeMatches: all values by pointer; null for what must not be there', async () => {
    const wanted = { universe: { '/box/0': 'pen', '/a~1b/c': 1, '/box/1': null } }
    expect(await builtInScore('universeMatches', wanted, { thing: 'pen' })).toEqual(right)
    expect(await builtInScore('universeMatches', wanted)).toEqual(wrong)
  })

  test('replyContains: all texts, whatever their case', async () => {
    expect(
      await builtInScore(
        'replyContains',
        { reply: ['Pen', 'box'] },
        { answer: 'the PEN is in the box' },
      ),
    ).toEqual(right)
    expect(
      await builtInScore('replyContains', { reply: ['Pen', 'box'] }, { answer: 'the box' }),
    ).toEqual(wrong)
    expect(await builtInScore('replyContains', { reply: ['Pen'] })).toEqual(wrong)
  })

  test('replyMatches: a regular expression', async () => {
    expect(
      await builtInScore(
        'replyMatches',
        { pattern: '^It costs \\d+\\.$' },
        { answer: 'It costs 12.' },
      ),
    ).toEqual(right)
    expect(
      await builtInScore(
        'replyMatches',
        { pattern: '^It costs \\d+\\.$' },
        { answer: 'It costs.' },
      ),
    ).toEqual(wrong)
  })

  test('calledTools: each tool without an error', async () => {
    expect(await builtInScore('calledTools', { calls: ['put'] }, { thing: 'pen' })).toEqual(right)
    expect(await builtInScore('calledTools', { calls: ['put'] })).toEqual(wrong)
  })
})
