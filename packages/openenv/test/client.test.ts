import { inspect } from 'node:util'

import type { Env, JsonObject, TaskSource } from '@tiltyard/core'
import { envCases, simulatedClock } from '@tiltyard/testkit'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import {
  openenvServer,
  type OpenEnvServer,
  openenvSource,
  type OpenEnvSourceOptions,
} from '../src/index.ts'
import { scriptedServer, type ScriptedServer, send } from './support/scripted-server.ts'
import { rightRule, type SumsSource, sumsSource } from './support/sums.ts'

const quiet = () => new AbortController().signal
const context = () => ({ signal: quiet(), toolCallsLeft: Infinity })
const says = (content: string) => ({ role: 'assistant' as const, content })
const calls = (...names: readonly (readonly [string, JsonObject])[]) => ({
  role: 'assistant' as const,
  content: '',
  toolCalls: names.map(([name, args], index) => ({ id: `c${index}`, name, arguments: args })),
})

async function openFirst(source: TaskSource, seed = 7): Promise<Env> {
  const { value: task } = await source.tasks('all')[Symbol.asyncIterator]().next()
  return (await source.open(task, { seed, signal: quiet() })) as Env
}

describe('against our own server', () => {
  let inner: SumsSource
  let server: OpenEnvServer
  let source: TaskSource

  beforeEach(async () => {
    inner = sumsSource()
    server = openenvServer({ source: inner, reward: rightRule, splits: ['train'] })
    source = await openenvSource({ url: await server.listen(), steps: ['right', 'calls'] })
    inner.ends.length = 0
  })
  afterEach(() => server.close())

  const env = (id: string) => async (seed: number) =>
    (await source.open({ id, fingerprint: id }, { seed, signal: quiet() })) as Env

  for (const { name, skip, run } of envCases({
    create: (seed) => env('one-turn')(seed),
    replies: [says('9')],
    call: { name: 'add', arguments: { a: 1, b: 2 } },
  }))
    // oxlint-disable-next-line vitest/expect-expect -- the case asserts
    test.skipIf(skip !== undefined)(`as an Env: ${name}`, run)

  test('E27: the same play gives the same reward and scores in process and over the wire', async () => {
    const play = async (made: Env) => {
      const first = await made.start(quiet())
      const replies = [
        calls(['add', { a: 7, b: 2 }], ['fail', { why: 'z' }], ['nope', {}]),
        says('It is 9.'),
        says('no idea'),
      ]
      const steps = []
      for (const reply of replies) steps.push(await made.step(reply, context()))
      await made.end({ kind: 'completed' })
      const outcome = await made.score(quiet())
      await made.close()
      const shown = steps.map(({ done, messages }) => ({ done, messages: messages ?? [] }))
      return { first, shown, outcome }
    }
    const remote = await play(await env('two-turns')(7))
    const direct = await play(
      (await inner.open({ id: 'two-turns', fingerprint: '' }, { seed: 7, signal: quiet() })) as Env,
    )
    expect(remote.first).toEqual(direct.first)
    expect(remote.shown.slice(1)).toEqual(direct.shown.slice(1))
    const { reward, ...scores } = remote.outcome.scores
    expect(reward).toEqual({ value: 0.5 })
    expect(scores).toEqual({ right: { value: 0.5 }, calls: { value: 3 } })
    expect(remote.shown[0]!.messages.map(({ content }) => content)).toEqual([
      '9',
      'error: bad: z',
      'error: unknown tool "nope"',
    ])
    expect(rightRule.reward(direct.outcome)).toEqual({ reward: 0.5 })
  })

  test('tasks come from the task API, by split', async () => {
    const ids = async (split: string) => {
      const found: string[] = []
      for await (const { id } of source.tasks(split)) found.push(id)
      return found
    }
    expect(await ids('train')).toEqual(['one-turn', 'two-turns'])
    expect(await ids('all')).toEqual(['one-turn', 'two-turns', 'third'])
    await expect(ids('trian')).rejects.toThrow('did you mean "train"')
  })

  test('an episode that is cut gives its place back at once, and has no made-up reward', async () => {
    const made = await openFirst(source)
    await made.start(quiet())
    await made.end({ kind: 'cut', by: 'reply_tokens' })
    await vi.waitFor(() => expect(server.activeSessions).toBe(0), { timeout: 60_000 })
    const { scores, metrics } = await made.score(quiet())
    expect(scores['reward']).toEqual({ unscored: 'the server gave no reward' })
    expect(metrics['cut']).toBe(1)
  })
})

describe('against a server that misbehaves', () => {
  const toolSchema = { action: { title: 'CallToolAction' } }
  const tasks = { all: [{ id: 't', reset: { split: 'train', index: 3 } }] }
  let server: ScriptedServer | undefined
  afterEach(() => server?.close())

  const sourceOf = (options: Partial<OpenEnvSourceOptions> = {}) =>
    openenvSource({ url: server!.url, tasks, ...options })

  const ready = {
    observation: { messages: [{ role: 'user', content: 'go' }] },
    reward: null,
    done: false,
  }

  test('an answer that comes after its time is never taken for the next one’s: the connection is closed', async () => {
    server = await scriptedServer(toolSchema, (frame, socket) => {
      if (frame['type'] === 'reset') send(socket, ready)
      else if ((frame['data'] as JsonObject | undefined)?.['type'] === 'list_tools')
        send(socket, { observation: { tools: [] }, reward: null, done: false })
    })
    const clock = simulatedClock()
    const made = await openFirst(await sourceOf({ clock, messageMs: 1000 }))
    await made.start(quiet())
    const step = made.step(calls(['slow', {}]), context())
    step.catch(() => {})
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), { timeout: 60_000 })
    await clock.advance(1000)
    await expect(step).rejects.toThrow(
      /gave up waiting for tool "slow" of 127\.0\.0\.1:\d+ after 1000 ms/,
    )
    await expect(made.step(calls(['slow', {}]), context())).rejects.toThrow('closed')
  })

  test('a server at capacity is asked again, later and later, until a session is free', async () => {
    server = await scriptedServer(toolSchema, (frame, socket, connection) => {
      if (connection <= 3 && frame['type'] === 'connect') {
        const data = {
          message: 'full',
          code: 'CAPACITY_REACHED',
          active_sessions: 1,
          max_sessions: 1,
        }
        socket.send(JSON.stringify({ type: 'error', data }))
        socket.close()
      } else if (frame['type'] === 'reset') send(socket, ready)
      else if (frame['type'] === 'step') send(socket, { observation: { tools: [] } })
    })
    const slept: number[] = []
    const clock = {
      now: () => slept.reduce((sum, ms) => sum + ms, 0),
      sleep: (ms: number, signal?: AbortSignal) => {
        // Deadlines never pass here; pauses are over at once.
        if (ms >= 10_000)
          return new Promise<void>((_, reject) =>
            signal?.addEventListener('abort', () => reject(new Error('over')), { once: true }),
          )
        slept.push(ms)
        return Promise.resolve()
      },
    }
    const made = await openFirst(await sourceOf({ clock }))
    const { messages } = await made.start(quiet())
    expect(messages).toEqual([{ role: 'user', content: 'go' }])
    expect(server.connections).toBe(4)
    expect(slept).toHaveLength(3)
    expect(slept[0]).toBeGreaterThanOrEqual(125)
    expect(slept[2]).toBeGreaterThan(slept[0]!)
    await made.close()
  })

  test('a server that stays full is given up in the time for it', async () => {
    server = await scriptedServer(toolSchema, (frame, socket) => {
      if (frame['type'] !== 'connect') return
      socket.send(
        JSON.stringify({ type: 'error', data: { message: 'full', code: 'CAPACITY_REACHED' } }),
      )
      socket.close()
    })
    let now = 0
    const clock = {
      now: () => now,
      sleep: (ms: number, signal?: AbortSignal) => {
        if (ms >= 10_000)
          return new Promise<void>((_, reject) =>
            signal?.addEventListener('abort', () => reject(new Error('over')), { once: true }),
          )
        now += ms
        return Promise.resolve()
      },
    }
    const made = await openFirst(await sourceOf({ clock, capacityMs: 2000 }))
    await expect(made.start(quiet())).rejects.toThrow(/a free session of .* after 2000 ms/)
  })

  test('rewards: null is none; metadata is read beside the observation and in it; sum or last', async () => {
    const rewards = [0.25, null, 0.5]
    server = await scriptedServer(toolSchema, (frame, socket) => {
      const type = (frame['data'] as JsonObject | undefined)?.['type']
      if (frame['type'] === 'reset')
        send(socket, { ...ready, observation: { hint: 'say something' } })
      else if (type === 'list_tools')
        send(socket, { observation: { tools: [{ name: 'go', inputSchema: { type: 'object' } }] } })
      else if (frame['type'] === 'step') {
        const reward = rewards.shift() ?? null
        const isLast = rewards.length === 0
        const told = { scores: { style: 1 } }
        send(socket, {
          observation: {
            tool_name: 'go',
            result: { content: [{ type: 'text', text: 'went' }] },
            ...(isLast ? { metadata: told } : {}),
          },
          reward,
          done: isLast,
        })
      }
    })
    const made = await openFirst(await sourceOf({ reward: 'sum', steps: ['style', 'depth'] }))
    const { messages, tools } = await made.start(quiet())
    expect(messages).toEqual([{ role: 'user', content: 'say something' }])
    expect(tools).toEqual([{ name: 'go', parameters: { type: 'object' } }])
    const step = await made.step(calls(['go', {}], ['go', {}], ['go', {}], ['go', {}]), context())
    expect(step.done).toBe(true)
    expect(step.messages?.map(({ content }) => content)).toEqual([
      'went',
      'went',
      'went',
      'error: not run: the episode is over',
    ])
    await made.end({ kind: 'completed' })
    expect((await made.score(quiet())).scores).toEqual({
      reward: { value: 0.75 },
      style: { value: 1 },
      depth: { unscored: 'the server gave no score "depth"' },
    })
    expect(server.frames[0]).toEqual({ type: 'reset', data: { seed: 7, split: 'train', index: 3 } })
  })

  test('an error frame fails the episode with the server’s words; F22: so does a connection that is closed without an answer, at once', async () => {
    server = await scriptedServer(toolSchema, (frame, socket, connection) => {
      if (frame['type'] === 'reset') send(socket, ready)
      else if ((frame['data'] as JsonObject | undefined)?.['type'] === 'list_tools')
        send(socket, { observation: { tools: [] } })
      else if (frame['type'] === 'step' && connection === 1)
        socket.send(
          JSON.stringify({ type: 'error', data: { message: 'boom', code: 'EXECUTION_ERROR' } }),
        )
      else if (frame['type'] === 'step') socket.close(1011)
    })
    const source = await sourceOf()
    const [first, second] = [await openFirst(source), await openFirst(source)]
    await first.start(quiet())
    await second.start(quiet())
    await expect(first.step(calls(['x', {}]), context())).rejects.toThrow(
      'the environment answered EXECUTION_ERROR: boom',
    )
    await expect(second.step(calls(['x', {}]), context())).rejects.toThrow(
      'the server closed the connection (code 1011)',
    )
  })

  test('an environment without tools is played by one tool whose arguments are the action', async () => {
    const action = {
      title: 'GuessAction',
      type: 'object',
      properties: { message: { type: 'string' }, metadata: { type: 'object' } },
      required: ['message'],
      additionalProperties: false,
    }
    server = await scriptedServer({ action }, (frame, socket) => {
      if (frame['type'] === 'reset')
        send(socket, { observation: { text: 'guess' }, reward: null, done: false })
      else if (frame['type'] === 'step') {
        const { message } = frame['data'] as JsonObject
        if (message === undefined)
          socket.send(
            JSON.stringify({
              type: 'error',
              data: { message: 'Invalid message', code: 'VALIDATION_ERROR' },
            }),
          )
        else
          send(socket, {
            observation: { text: `you said ${message as string}`, tries: 1 },
            reward: true,
            done: true,
          })
      }
    })
    const made = await openFirst(await sourceOf({ actionTool: 'guess' }))
    const { messages, tools } = await made.start(quiet())
    expect(messages).toEqual([{ role: 'user', content: 'guess' }])
    expect(tools).toEqual([
      {
        name: 'guess',
        description: 'Takes one step in the environment.',
        parameters: {
          type: 'object',
          properties: { message: { type: 'string' } },
          required: ['message'],
          additionalProperties: false,
        },
      },
    ])
    const wrong = await made.step(calls(['guess', {}], ['other', {}]), context())
    expect(wrong.messages?.map(({ content }) => content)).toEqual([
      'error: the arguments don’t fit the action’s schema',
      'error: there is no tool "other"; there is guess',
    ])
    const step = await made.step(calls(['guess', { message: 'hi' }]), context())
    expect(step).toMatchObject({
      done: true,
      messages: [{ content: '{"text":"you said hi","tries":1}' }],
    })
    await made.end({ kind: 'completed' })
    expect((await made.score(quiet())).scores['reward']).toEqual({ value: 1 })
  })

  test('F64: no secret of an address or a header is in what is told', async () => {
    const headers = { authorization: 'Bearer SENTINEL' }
    server = await scriptedServer(toolSchema, () => {})
    const wrong: readonly OpenEnvSourceOptions[] = [
      { url: 'http://me:SENTINEL@127.0.0.1:9', tasks, headers },
      { url: 'http://127.0.0.1:9?token=SENTINEL', tasks, headers },
      { url: `${server.url}/elsewhere?token=SENTINEL`, tasks, headers },
      { url: `${server.url}?token=SENTINEL`, headers },
    ]
    for (const options of wrong) {
      const error: unknown = await openenvSource(options).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code: 'CONFIG' })
      expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('SENTINEL')
    }
  })

  test('what is no OpenEnv server, lists no tasks, or is set up wrongly is an error before anything plays', async () => {
    await expect(openenvSource({ url: 'http://127.0.0.1:9', tasks })).rejects.toThrow(
      "can't be reached",
    )
    server = await scriptedServer(toolSchema, () => {})
    await expect(openenvSource({ url: server.url })).rejects.toThrow('lists no tasks; name them')
    await expect(openenvSource({ url: `${server.url}/elsewhere`, tasks })).rejects.toThrow(
      'answered 404; is it an OpenEnv server?',
    )
    await expect(openenvSource({ url: 'ftp://x', task: [] } as never)).rejects.toThrow(
      'did you mean "tasks"',
    )
  })
})
