/** The cases for Envs catch Envs that break their promises: each fault below fails at least the case that it is named after. */
import type { Env, EpisodeOutcome, Step } from '@tiltyard/core'
import { envCases } from '@tiltyard/testkit'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { bundleEnv, defineTool } from '../src/index.ts'
import { makeBundle } from './support/make-bundle.ts'
import { call, calls, says } from './support/play.ts'

const take = defineTool({
  name: 'take',
  parameters: z.object({ good: z.string() }),
  run: () => 'taken',
})
const bundle = await makeBundle({ module: { tools: [take], verifiers: { always: () => 1 } } })

/** Names of the cases that an Env with this fault fails. */
async function failedCases(fault: (env: Env) => Env): Promise<readonly string[]> {
  const cases = envCases({
    create: (seed) => Promise.resolve(fault(bundleEnv(bundle, bundle.tasks.get('one'), { seed }))),
    replies: [calls(call('take', { good: 'pen' })), says('Done.')],
    call: { name: 'take', arguments: { good: 'pen' } },
  })
  const failed: string[] = []
  for (const { name, run } of cases) await run().catch(() => failed.push(name))
  return failed
}

const withStep =
  (change: (step: Step) => Step) =>
  (env: Env): Env => ({ ...env, step: async (...args) => change(await env.step(...args)) })

const withOutcome =
  (change: (outcome: EpisodeOutcome) => EpisodeOutcome) =>
  (env: Env): Env => ({ ...env, score: async (signal) => change(await env.score(signal)) })

let shared = 0

test.each<[string, RegExp, (env: Env) => Env]>([
  [
    'answers under other ids',
    /each call is answered once, under its id/,
    withStep((step) => ({
      ...step,
      messages: (step.messages ?? []).map((message) =>
        message.role === 'tool' ? { ...message, toolCallId: 'other' } : message,
      ),
    })),
  ],
  [
    'answers in another order',
    /in the order of the calls/,
    withStep((step) => ({ ...step, messages: (step.messages ?? []).toReversed() })),
  ],
  [
    'tells no error of an unknown tool',
    /a tool that does not exist is told/,
    withStep((step) => ({
      ...step,
      calls: (step.calls ?? []).map(({ id, name, arguments: args, result, ms }) => ({
        id,
        name,
        arguments: args,
        result,
        ms,
      })),
    })),
  ],
  [
    'throws at the model’s mistakes',
    /an argument that the tool does not have is told/,
    withStep((step) => {
      if (step.calls?.some(({ error }) => error !== undefined)) throw new Error('bad call')
      return step
    }),
  ],
  [
    'gives a score that is no number',
    /finite scores/,
    withOutcome((outcome) => ({ ...outcome, scores: { always: { value: Number.NaN } } })),
  ],
  [
    'scores a cut episode as completed',
    /cut by episode_tokens/,
    withOutcome((outcome) => ({ ...outcome, end: { kind: 'completed' } })),
  ],
  [
    'scores otherwise the second time',
    /scoring twice gives the same/,
    withOutcome((outcome) => ({ ...outcome, metrics: { ...outcome.metrics, n: (shared += 1) } })),
  ],
  [
    'runs more calls than are left',
    /calls beyond those that are left/,
    (env) => ({ ...env, step: (reply, given) => env.step(reply, { ...given, toolCallsLeft: 9 }) }),
  ],
  [
    'ignores the signal',
    /a signal that was aborted/,
    (env) => ({
      ...env,
      step: (reply, given) => env.step(reply, { ...given, signal: new AbortController().signal }),
    }),
  ],
  [
    'ends without a reply without a call',
    /an argument that the tool does not have/,
    withStep((step) => ({ ...step, done: true })),
  ],
])('an Env that %s', async (_, caught, fault) => {
  expect(await failedCases(fault)).toContainEqual(expect.stringMatching(caught))
})

test('an Env without a fault fails none', async () => {
  expect(await failedCases((env) => env)).toEqual([])
})
