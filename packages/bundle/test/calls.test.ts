import { setTimeout as sleep } from 'node:timers/promises'

import type { JsonValue, PlayedCall } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import {
  bundleEnv,
  defineTool,
  type PlayOptions,
  ToolError,
  type ToolContext,
  type ToolDefinition,
} from '../src/index.ts'
import { limitOutput } from '../src/play/output-limit.ts'
import { makeBundle } from './support/make-bundle.ts'
import { answers, call, calls, never, quiet, started, stepContext } from './support/play.ts'

async function envWith(
  tools: readonly ToolDefinition[],
  manifest: Record<string, unknown> = {},
  options: PlayOptions = {},
) {
  const bundle = await makeBundle({
    manifest,
    universe: { log: [] },
    module: { tools, verifiers: { always: () => 1 } },
  })
  return await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, ...options }))
}

const echo = defineTool({
  name: 'echo',
  parameters: z.object({ zip: z.string() }),
  run: (args) => args,
})

const byJsonSchema = defineTool({
  name: 'plan',
  parameters: {
    type: 'object',
    properties: {
      day: { type: 'integer' },
      mode: { enum: ['air', 'sea'] },
      note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      limit: { $ref: '#/$defs/limit' },
    },
    required: ['day'],
    $defs: { limit: { type: 'integer', minimum: 1 } },
  },
  run: (args) => args,
})

describe('arguments', () => {
  test('E18, F9: what the schema says is a string reaches the tool as that string', async () => {
    const env = await envWith([echo])
    const values = ['07040', 'true', 'null', '1e5', '[1]', '']
    expect(await answers(env, ...values.map((zip) => call('echo', { zip })))).toEqual(
      values.map((zip) => JSON.stringify({ zip })),
    )
  })

  test('E19, F14: a call whose arguments are no JSON object is not run, keeps its raw text, and the next call succeeds', async () => {
    const env = await envWith([echo])
    const error = "the arguments aren't a JSON object"
    const texts = ['"{\\"zip\\":1}"', '[1]', '3', '{"zip":']
    const bad = texts.map((rawArguments, at) => ({
      id: `bad${at}`,
      name: 'echo',
      rawArguments,
      error,
    }))
    const step = await env.step(calls(...bad, call('echo', { zip: '1' })), stepContext())
    expect(step.messages?.map(({ content }) => content)).toEqual([
      ...texts.map(() => `error: ${error}`),
      '{"zip":"1"}',
    ])
    expect(step.messages?.slice(0, 4)).toMatchObject(bad.map(({ id }) => ({ toolCallId: id })))
    expect(step.calls?.slice(0, 4)).toMatchObject(texts.map((text) => ({ arguments: text, error })))
    await env.end({ kind: 'completed' })
    expect((await env.score(quiet())).metrics).toMatchObject({ tool_calls: 1, tool_errors: 4 })
  })

  test('E21, F10: a value that does not fit is told by name; the call is recorded and the episode goes on', async () => {
    const env = await envWith([echo, byJsonSchema])
    const step = await env.step(
      calls(
        call('plan', { day: '2026-01-15', mode: 'rail' }),
        call('plan', { day: 3, note: null, limit: 0 }),
        call('echo', { zip: 19122 }),
        call('echo'),
      ),
      stepContext(),
    )
    expect(step.done).toBe(false)
    expect(step.calls?.map(({ error }) => error)).toEqual([
      'argument "day": must be integer; argument "mode": must be equal to one of the allowed values: "air", "sea"',
      'argument "limit": must be >= 1',
      'argument "zip": Invalid input: expected string, received number',
      'argument "zip": Invalid input: expected string, received undefined',
    ])
    expect(step.calls?.[0]?.arguments).toEqual({ day: '2026-01-15', mode: 'rail' })
  })

  test('F15: an integer beyond 2^53 reaches the tool digit by digit; one that can’t be taken is told as what it is', async () => {
    const find = defineTool({
      name: 'find',
      parameters: {
        type: 'object',
        properties: {
          order: { type: 'integer', minimum: 1 },
          among: { type: 'array', items: { type: ['integer', 'null'] } },
        },
      },
      run: (args) => args,
    })
    const count = defineTool({
      name: 'count',
      parameters: z.object({ to: z.int() }),
      run: (args) => args,
    })
    const env = await envWith([find, count])
    const [order, below] = ['9007199254740993', '-9007199254740993']
    const found = await answers(
      env,
      call('find', { order, among: [1, order] }),
      call('find', { order: below }),
      call('find', { order: '12' }),
      call('find', { order, among: ['x'] }),
      call('count', { to: order }),
    )
    expect(found).toEqual([
      JSON.stringify({ order, among: [1, order] }),
      'error: argument "order": must be >= 1',
      'error: argument "order": must be integer',
      'error: argument "among.0": must be integer,null',
      'error: argument "to": the integer has more digits than this tool can take',
    ])
  })

  test('F12: an argument that the tool does not have is told, with the nearest one', async () => {
    const env = await envWith([echo, byJsonSchema])
    expect(
      await answers(env, call('echo', { zip: '1', zipp: '2' }), call('plan', { day: 1, x: 1 })),
    ).toEqual([
      'error: unknown argument "zipp"; did you mean "zip"?',
      'error: unknown argument "x"; there is day, mode, note, limit',
    ])
  })

  test('E21: an unknown tool is told, with the nearest one', async () => {
    const env = await envWith([echo])
    expect(await answers(env, call('ecko', { zip: '1' }))).toEqual([
      'error: unknown tool "ecko"; did you mean "echo"?',
    ])
  })

  test('a zod schema’s defaults and transforms reach the tool; the model sees the input’s schema', async () => {
    const count = defineTool({
      name: 'count',
      parameters: z.object({ to: z.int().default(3), from: z.string().transform(Number) }),
      run: (args) => args,
    })
    const bundle = await makeBundle({ module: { tools: [count], verifiers: { always: () => 1 } } })
    expect(bundle.tools.get('count')?.spec.parameters).toEqual({
      type: 'object',
      properties: { to: { type: 'integer', default: 3 }, from: { type: 'string' } },
      required: ['from'],
    })
    const env = await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1 }))
    expect(await answers(env, call('count', { from: '2' }))).toEqual(['{"to":3,"from":2}'])
  })
})

/** A tool that takes so long, and what it did when. */
function recorder(parallel: boolean) {
  const events: string[] = []
  const tool = defineTool({
    name: 'slow',
    parallel,
    parameters: z.object({ name: z.string(), ms: z.number() }),
    run: async ({ name, ms }) => {
      events.push(`${name} begins`)
      await sleep(ms)
      events.push(`${name} ends`)
      return name
    },
  })
  return { events, tool }
}

const nestedLabel = (label: JsonValue) => ({ root: { label: 'a', next: { label } } })

test('a schema that refers to itself through members is checked to its depth', async () => {
  const tree = defineTool({
    name: 'tree',
    parameters: {
      type: 'object',
      properties: { root: { $ref: '#/$defs/node' } },
      $defs: {
        node: {
          type: 'object',
          properties: { label: { type: 'string' }, next: { $ref: '#/$defs/node' } },
        },
      },
    },
    run: () => 'fits',
  })
  const env = await envWith([tree])
  expect(await answers(env, call('tree', nestedLabel('b')), call('tree', nestedLabel(1)))).toEqual([
    'fits',
    'error: argument "root.next.label": must be string',
  ])
})

describe('order', () => {
  const twoCalls = [call('slow', { name: 'a', ms: 20 }), call('slow', { name: 'b', ms: 1 })]

  test('E24: calls of a reply run one after another', async () => {
    const { events, tool } = recorder(true)
    const env = await envWith([tool])
    expect(await answers(env, ...twoCalls)).toEqual(['a', 'b'])
    expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  test('E24, E20: side by side where bundle and tool allow it, answered in the order of the calls all the same', async () => {
    const { events, tool } = recorder(true)
    const env = await envWith([tool], { parallelCalls: true })
    expect(await answers(env, ...twoCalls)).toEqual(['a', 'b'])
    expect(events.slice(0, 2)).toEqual(['a begins', 'b begins'])
  })

  test('E24: one tool that is not safe keeps all calls of the reply in order', async () => {
    const { events, tool } = recorder(false)
    const env = await envWith([tool], { parallelCalls: true })
    await answers(env, ...twoCalls)
    expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })
})

function thrower(members: Partial<ToolDefinition>, error: unknown): ToolDefinition {
  return {
    ...defineTool({
      name: 'break',
      parameters: z.object({}),
      run: () => {
        throw error
      },
    }),
    ...members,
  }
}

describe('errors', () => {
  test('E22: an error that a tool means to throw is the model’s to read', async () => {
    const env = await envWith([thrower({ fatal: true }, new ToolError('user not found'))])
    expect(await answers(env, call('break'))).toEqual(['error: user not found'])
  })

  test('E22: an error that it does not mean is told too, and to whoever mends the tool', async () => {
    const seen: unknown[] = []
    const error = new TypeError('x is undefined')
    const env = await envWith(
      [thrower({}, error)],
      {},
      { onToolError: (...args) => seen.push(args) },
    )
    expect(await answers(env, call('break'))).toEqual(['error: x is undefined'])
    expect(seen).toEqual([[error, { tool: 'break' }]])
  })

  test('E22, E7: it fails the episode, with task, tool and cause, if the tool says so', async () => {
    const cause = new Error('connection refused')
    const env = await envWith([thrower({ fatal: true }, cause)])
    await expect(env.step(calls(call('break')), stepContext())).rejects.toMatchObject({
      code: 'TOOL',
      message: 'task "one": tool "break" failed: connection refused',
      cause,
    })
  })

  test.each([
    ['in the moment in which it is told', (resume: () => void) => resume()],
    ['later', (resume: () => void) => void setImmediate(resume)],
  ])('a tool that takes too long is told so, and writes nothing any more: %s', async (_, when) => {
    let late: unknown
    const slow = defineTool({
      name: 'slow',
      parameters: z.object({}),
      run: (_args, { universe, signal }: ToolContext) =>
        new Promise<void>((resolve) =>
          signal.addEventListener('abort', () =>
            when(() => {
              try {
                universe.update(() => {})
              } catch (error) {
                late = error
              }
              resolve()
            }),
          ),
        ),
    })
    const env = await envWith([slow], { limits: { toolMs: 5 } })
    expect(await answers(env, call('slow'))).toEqual([
      'error: gave up waiting for tool "slow" after 5 ms',
    ])
    await env.end({ kind: 'completed' })
    expect(late).toMatchObject({ code: 'STATE' })
  })

  test('the shorter of the bundle’s and the player’s limit on a call holds', async () => {
    const slow = defineTool({ name: 'slow', parameters: z.object({}), run: never })
    const env = await envWith([slow], { limits: { toolMs: 60_000 } })
    const step = await env.step(calls(call('slow')), stepContext({ toolMs: 5 }))
    expect(step.calls?.[0]?.error).toContain('after 5 ms')
  })

  test('F21: a signal aborted in the middle of a call ends the step with its reason', async () => {
    const stop = new AbortController()
    const waiting = defineTool({
      name: 'wait',
      parameters: z.object({}),
      run: (_, { signal }: ToolContext) => sleep(10_000, undefined, { signal }),
    })
    const env = await envWith([waiting], {}, {})
    const stepping = env.step(calls(call('wait')), stepContext({ signal: stop.signal }))
    stop.abort(new Error('the run stops'))
    await expect(stepping).rejects.toThrow('the run stops')
    await env.end({ kind: 'cancelled' })
  })

  test('E30: end waits for tool code that still runs', async () => {
    let isDone = false
    const slow = defineTool({
      name: 'slow',
      parameters: z.object({}),
      run: async () => {
        await sleep(40)
        isDone = true
      },
    })
    const env = await envWith([slow], { limits: { toolMs: 1 } })
    await answers(env, call('slow'))
    await env.end({ kind: 'completed' })
    expect(isDone).toBe(true)
  })

  test('calls beyond the limit are answered and not run, and do not count', async () => {
    const env = await envWith([echo])
    const three = ['1', '2', '3'].map((zip) => call('echo', { zip }))
    const step = await env.step(calls(...three), stepContext({ toolCallsLeft: 2 }))
    expect(step.messages?.map(({ content }) => content)).toEqual([
      '{"zip":"1"}',
      '{"zip":"2"}',
      'error: not run: no tool calls are left in this episode',
    ])
    await env.end({ kind: 'cut', by: 'tool_calls' })
    expect((await env.score(quiet())).metrics).toMatchObject({ tool_calls: 2, tool_errors: 1 })
  })
})

test('E36, E39: logs hold names and sizes, no text of prompts, arguments, results or errors', async () => {
  const lines: unknown[] = []
  const note = (...line: readonly unknown[]) => lines.push(line)
  const log = { debug: note, info: note, warn: note, error: note }
  const shout = defineTool({
    name: 'shout',
    parameters: z.object({ text: z.string() }),
    run: ({ text }) => {
      throw new Error(`MARK-ERROR ${text}`)
    },
  })
  const env = await envWith([shout, echo], {}, { log })
  await answers(env, call('shout', { text: 'MARK-ARGUMENT' }), call('echo', { zip: 'MARK-RESULT' }))
  await env.end({ kind: 'completed' })
  await env.score(quiet())
  expect(JSON.stringify(lines)).toContain('shout')
  expect(JSON.stringify(lines)).not.toContain('MARK')
})

describe('E23, F71: a long result', () => {
  const long = `${'x'.repeat(9_985)}Final: Lisbon🌍`
  const limits = { toolOutputChars: 100, toolOutputKeep: 'tail' } as const

  test('is shown to the model within the limit and kept whole in the record', async () => {
    const read = defineTool({ name: 'read', parameters: z.object({}), run: () => long })
    const env = await envWith([read], { limits })
    const step = await env.step(calls(call('read')), stepContext())
    const played = step.calls?.[0] as PlayedCall
    expect(played.result).toBe(long)
    const shown = step.messages?.[0]?.content as string
    expect(shown).toMatch(/^\[… 9900 characters left out …\]\n/)
    expect(shown).toContain('Final: Lisbon🌍')
  })

  test('keeps its head, its tail, or a half of each', () => {
    const text = 'abcdefghij'
    expect(limitOutput(text, { toolOutputChars: 4, toolOutputKeep: 'head' })).toBe(
      'abcd\n[… 6 characters left out …]',
    )
    expect(limitOutput(text, { toolOutputChars: 4, toolOutputKeep: 'tail' })).toBe(
      '[… 6 characters left out …]\nghij',
    )
    expect(limitOutput(text, { toolOutputChars: 4, toolOutputKeep: 'both' })).toBe(
      'ab\n[… 6 characters left out …]\nij',
    )
    expect(limitOutput(text, { toolOutputChars: 10, toolOutputKeep: 'both' })).toBe(text)
  })

  test('splits no character at either border', () => {
    const text = '🌍'.repeat(10)
    for (const toolOutputKeep of ['head', 'tail', 'both'] as const)
      for (let chars = 1; chars < 20; chars += 1) {
        const shown = limitOutput(text, { toolOutputChars: chars, toolOutputKeep })
        expect(Buffer.from(shown, 'utf8').toString('utf8')).toBe(shown)
        expect(shown.replace(/\n?\[…[^\]]*\]\n?/, '').length).toBeLessThanOrEqual(chars)
      }
  })
})
