import { StateError, textOf, UnsupportedError } from '@tiltyard/core'
import { envCases, registerCases, taskSourceCases } from '@tiltyard/testkit'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'

import {
  bundleEnv,
  bundleSource,
  defineTool,
  goldPlayer,
  playTask,
  type Task,
  type TaskInput,
  ToolError,
  type ToolContext,
} from '../src/index.ts'
import { type BundleParts, makeBundle } from './support/make-bundle.ts'
import { answers, call, calls, quiet, says, scored, started, stepContext } from './support/play.ts'

interface Store {
  readonly stock: Readonly<Record<string, number>>
}

const take = defineTool<Store, z.ZodObject<{ good: z.ZodString }>>({
  name: 'take',
  description: 'Takes one of a good.',
  parameters: z.object({ good: z.string() }),
  run({ good }, { universe }) {
    const left = universe.state.stock[good] ?? 0
    if (left === 0) throw new ToolError(`no ${good} is left`)
    universe.update((draft) => {
      draft.stock[good] = left - 1
    })
    return { left: left - 1 }
  },
})

const store: BundleParts<Store> = {
  universe: { stock: { pen: 2, ink: 0 } },
  module: { tools: [take], verifiers: { always: () => 1 } },
  tasks: [
    {
      id: 'buy',
      turns: [{ prompt: 'Take a pen.' }],
      gold: { calls: [{ name: 'take', arguments: { good: 'pen' } }], replies: ['Taken.'] },
    },
  ],
  manifest: {
    system: 'system.md',
    steps: [
      { name: 'stock', use: 'universeEqualsGold' },
      { name: 'polite', use: 'always' },
    ],
    reward: 'stock',
  },
  files: { 'system.md': 'You keep a store.\n' },
}

async function envOf<State>(parts: BundleParts<State>, seed = 1) {
  const bundle = await makeBundle(parts)
  return bundleEnv(bundle, bundle.tasks.get(bundle.tasks.ids[0]!), { seed })
}

const task = (turns: NonNullable<TaskInput['turns']>): TaskInput[] => [{ id: 'talk', turns }]

describe('a bundle’s Env keeps what every Env promises', async () => {
  const bundle = await makeBundle(store)
  const buy = bundle.tasks.get('buy')
  registerCases(
    test,
    envCases({
      create: (seed) => Promise.resolve(bundleEnv(bundle, buy, { seed })),
      replies: [calls(call('take', { good: 'pen' })), says('Taken.')],
      call: { name: 'take', arguments: { good: 'pen' } },
    }),
  )
})

describe('a bundle’s source keeps what every TaskSource promises', () => {
  registerCases(
    test,
    taskSourceCases({ create: async () => bundleSource(await makeBundle(store)) }),
  )
})

describe('turns', () => {
  test('E11: a reply without a call ends the turn; the next prompt follows; after the last the episode is done', async () => {
    const env = await started(
      await envOf({
        ...store,
        tasks: task([{ prompt: 'First.' }, { prompt: 'Second.' }]),
        manifest: {},
      }),
    )
    const step = await env.step(says('Yes.'), stepContext())
    expect(step).toEqual({
      done: false,
      messages: [{ role: 'user', content: 'Second.' }],
      turn: {},
    })
    expect(await env.step(says('Also.'), stepContext())).toEqual({ done: true })
  })

  test('E11: a reply with a call does not end the turn', async () => {
    const env = await started(await envOf(store))
    const step = await env.step(calls(call('take', { good: 'pen' })), stepContext())
    expect(step.done).toBe(false)
  })

  test('E12, E13: a later turn gives its whole system prompt and its tools; what it leaves out stays', async () => {
    const env = await envOf({
      ...store,
      manifest: { system: 'system.md' },
      tasks: task([
        { prompt: '1', tools: [] },
        { prompt: '2', system: { text: 'You close the store.' }, tools: ['take'] },
        { prompt: '3' },
        { prompt: '4', system: 'system.md' },
      ]),
    })
    const first = await env.start(quiet())
    expect(first.messages[0]).toEqual({ role: 'system', content: 'You keep a store.' })
    expect(first.tools).toEqual([])
    const heads = []
    for (const reply of ['a', 'b', 'c']) {
      const step = await env.step(says(reply), stepContext())
      heads.push(step.done ? undefined : step.turn)
    }
    expect(heads[0]?.system).toEqual({ role: 'system', content: 'You close the store.' })
    expect(heads[0]?.tools?.map(({ name }) => name)).toEqual(['take'])
    expect(heads[1]).toEqual({})
    expect(heads[2]).toEqual({ system: { role: 'system', content: 'You keep a store.' } })
  })

  test('E13: a tool that the turn does not offer is not run', async () => {
    const env = await started(
      await envOf({ ...store, tasks: task([{ prompt: 'x', tools: [] }]), manifest: {} }),
    )
    expect(await answers(env, call('take', { good: 'pen' }))).toEqual([
      'error: unknown tool "take"',
    ])
  })

  test('E15: listed prompts come in order, whatever the agent says', async () => {
    const prompts = ['1', '2', '3', '4']
    const env = await envOf({
      ...store,
      tasks: task(prompts.map((prompt) => ({ prompt }))),
      manifest: {},
    })
    const seen = [(await env.start(quiet())).messages.at(-1)?.content]
    for (const reply of ['stop', '', 'What?']) {
      const step = await env.step(says(reply), stepContext())
      seen.push(step.messages?.[0]?.content)
    }
    expect(seen).toEqual(prompts)
  })

  test('E15: a user makes its prompts from the conversation, and says when it is done', async () => {
    const closed = vi.fn<() => Promise<void>>(() => Promise.resolve())
    const env = await envOf({
      manifest: { tasks: ['tasks.jsonl'] },
      tasks: [{ id: 'talk', user: { use: 'echo', options: { most: 2 } } }],
      module: {
        verifiers: { always: () => 1 },
        users: {
          echo: ({ options, task: { id } }) => ({
            next: (messages) => {
              const replies = messages.filter(({ role }) => role === 'assistant')
              if (replies.length >= Number(options['most'])) return Promise.resolve(undefined)
              const last = replies.at(-1)?.content ?? id
              return Promise.resolve({ prompt: `You said ${textOf(last)}.` })
            },
            close: closed,
          }),
        },
      },
    })
    expect((await env.start(quiet())).messages.at(-1)?.content).toBe('You said talk.')
    const step = await env.step(says('hm'), stepContext())
    expect(step.messages?.[0]?.content).toBe('You said hm.')
    expect(await env.step(says('hm'), stepContext())).toEqual({ done: true })
    await env.end({ kind: 'completed' })
    expect(closed).toHaveBeenCalledOnce()
  })

  test('a user that gives no turn is a failure that says what is wrong', async () => {
    const env = await envOf({
      tasks: [{ id: 'talk', user: { use: 'odd' } }],
      module: {
        verifiers: { always: () => 1 },
        users: { odd: () => ({ next: () => Promise.resolve({ promt: 'x' } as never) }) },
      },
    })
    await expect(env.start(quiet())).rejects.toThrow(/task "talk": a turn of its user/)
  })

  test('E16: images are shown with their size; a player without images is refused before anything is played', async () => {
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYaAAAAC0lEQVR42mNgwAUAABoAAbXuZxkAAAAASUVORK5CYII=',
      'base64',
    )
    const bundle = await makeBundle({
      tasks: task([
        {
          prompt: [
            { type: 'text', text: 'What is it?' },
            { type: 'image', file: 'a.png' },
          ],
        },
      ]),
      files: { 'a.png': png },
    })
    const env = bundleEnv(bundle, bundle.tasks.get('talk'), { seed: 1 })
    const content = (await env.start(quiet())).messages.at(-1)?.content
    expect(content).toMatchObject([
      { type: 'text' },
      { type: 'image', format: 'png', width: 3, height: 2 },
    ])
    const needs = { tools: true, images: false, changedHead: true }
    await expect(bundleSource(bundle).prepare(needs, quiet())).rejects.toThrow(
      'tasks show images, and the renderer takes none (task "talk")',
    )
  })

  test('E12: a player that keeps the head is refused by name of the tasks, before anything is played', async () => {
    const turns = [{ prompt: 'a' }, { prompt: 'b', system: { text: 'New.' } }]
    const tasks = Array.from({ length: 7 }, (_, index) => ({ id: `t${index}`, turns }))
    const source = bundleSource(await makeBundle({ tasks }))
    await expect(
      source.prepare({ tools: true, images: true, changedHead: false }, quiet()),
    ).rejects.toThrow(/later turns change .*\(task "t0", "t1", "t2", "t3", "t4" and 2 more\)/)
  })
})

describe('episodes', () => {
  test('E10, F25: two live episodes of a task never see each other’s changes', async () => {
    const bundle = await makeBundle(store)
    const open = () => started(bundleEnv(bundle, bundle.tasks.get('buy'), { seed: 1 }))
    const envs = await Promise.all(Array.from({ length: 8 }, open))
    const results = await Promise.all(
      envs.map((env) => answers(env, call('take', { good: 'pen' }))),
    )
    expect(results).toEqual(Array.from({ length: 8 }, () => ['{"left":1}']))
  })

  test('F25: a tool that writes to what it knows of its task, or to its arguments, changes neither task nor record', async () => {
    const meddle = defineTool({
      name: 'meddle',
      parameters: { type: 'object', properties: { list: { type: 'array' } } },
      run: (args, { task: { meta } }: ToolContext) => {
        ;(args['list'] as unknown[]).push('more')
        ;(meta as { level?: number }).level = 9
      },
    })
    const bundle = await makeBundle({
      module: { tools: [meddle], verifiers: { always: () => 1 } },
      tasks: [{ id: 'a', turns: [{ prompt: 'x' }], meta: { level: 1 } }],
    })
    const env = await started(bundleEnv(bundle, bundle.tasks.get('a'), { seed: 1 }))
    const step = await env.step(calls(call('meddle', { list: [1] })), stepContext())
    expect(step.calls?.[0]?.error).toMatch(/Cannot assign to read only property 'level'/)
    expect(step.calls?.[0]?.arguments).toEqual({ list: [1] })
    expect(bundle.tasks.get('a').meta).toEqual({ level: 1 })
  })

  test('F24: members of a group have one instance; other seeds and other tasks have others', async () => {
    const bundle = await makeBundle({
      tasks: [...task([{ prompt: 'x' }]), { id: 'b', turns: [{ prompt: 'x' }] }],
    })
    const instance = (id: string, seed: number) =>
      bundleEnv(bundle, bundle.tasks.get(id), { seed }).instance
    expect(instance('talk', 1)).toBe(instance('talk', 1))
    expect(new Set([instance('talk', 1), instance('talk', 2), instance('b', 1)]).size).toBe(3)
  })

  test('F28: clock and chance of the tools come from the task and the seed', async () => {
    const seen: unknown[] = []
    const parts: BundleParts = {
      ...store,
      manifest: { clock: '2025-05-05T05:05:05Z' },
      module: {
        verifiers: { always: () => 1 },
        tools: [
          defineTool({
            name: 'draw',
            parameters: z.object({}),
            run: (_, { now, random }: ToolContext) => {
              seen.push([now, random.next()])
            },
          }),
        ],
      },
      tasks: [
        { id: 'own', turns: [{ prompt: 'x' }], clock: '2026-02-03T04:05:06Z' },
        { id: 'default', turns: [{ prompt: 'x' }] },
      ],
    }
    const bundle = await makeBundle(parts)
    for (const [id, seed] of [
      ['own', 1],
      ['own', 1],
      ['own', 2],
      ['default', 1],
    ] as const) {
      const env = await started(bundleEnv(bundle, bundle.tasks.get(id), { seed }))
      expect(await answers(env, call('draw'), call('draw'))).toEqual(['ok', 'ok'])
    }
    const [first, second, again, , otherSeed, , byManifest] = seen as [number, number][]
    expect(first).toEqual(again)
    expect(first![0]).toBe(Date.UTC(2026, 1, 3, 4, 5, 6))
    expect(byManifest![0]).toBe(Date.UTC(2025, 4, 5, 5, 5, 5))
    expect(new Set([first![1], second![1], otherSeed![1]]).size).toBe(3)
  })

  test('E31: gold and expected values reach no prompt, no tool specification and no tool', async () => {
    let context: unknown
    const secret = 'GOLD-17'
    const bundle = await makeBundle({
      module: {
        verifiers: { always: () => 1 },
        tools: [
          defineTool({
            name: 'look',
            parameters: z.object({ at: z.string() }),
            run: (_, given: ToolContext) => {
              context = given
              return 'nothing'
            },
          }),
        ],
      },
      tasks: [
        {
          id: 'secret',
          turns: [{ prompt: 'Guess.' }],
          gold: { calls: [{ name: 'look', arguments: { at: secret } }], replies: [secret] },
          expect: { answer: secret },
          meta: { level: 3 },
        },
      ],
    })
    const env = bundleEnv(bundle, bundle.tasks.get('secret'), { seed: 1 })
    const shown = await env.start(quiet())
    const step = await env.step(calls(call('look', { at: 'here' })), stepContext())
    expect(JSON.stringify([shown, step])).not.toContain(secret)
    const { task: facts, universe } = context as ToolContext
    expect(facts).toEqual({ id: 'secret', tags: [], meta: { level: 3 } })
    expect(JSON.stringify(universe.state)).not.toContain(secret)
  })

  test('a reply before start, and after end, is refused', async () => {
    const env = await envOf(store)
    await expect(env.step(says('x'), stepContext())).rejects.toThrow(StateError)
    await started(env)
    await expect(env.start(quiet())).rejects.toThrow(StateError)
    await expect(env.score(quiet())).rejects.toThrow(StateError)
    await env.end({ kind: 'completed' })
    await expect(env.step(says('x'), stepContext())).rejects.toThrow(StateError)
  })

  test('E25: messages, tool calls, tool errors and the cut are counted', async () => {
    const env = await started(await envOf(store))
    await env.step(
      calls(call('take', { good: 'pen' }), call('take', { good: 'ink' }), {
        id: 'bad',
        name: 'take',
        rawArguments: '[1',
        error: "the arguments aren't a JSON object",
      }),
      stepContext(),
    )
    await env.end({ kind: 'cut', by: 'replies' })
    const { metrics } = await env.score(quiet())
    expect(metrics).toEqual({ messages: 6, tool_calls: 2, tool_errors: 2, cut: 1 })
  })

  test('E29: a cut episode gets what its verifiers say', async () => {
    const env = await started(await envOf(store))
    await answers(env, call('take', { good: 'pen' }))
    await env.end({ kind: 'cut', by: 'episode_tokens' })
    const { scores } = await env.score(quiet())
    expect(scores).toEqual({ stock: { value: 1 }, polite: { value: 1 } })
  })

  test('the gold’s player earns the full reward', async () => {
    const bundle = await makeBundle(store)
    const { outcome, conversation } = await playTask(
      bundle,
      'buy',
      goldPlayer(bundle.tasks.get('buy')),
    )
    expect(bundle.reward?.reward(outcome)).toEqual({ reward: 1 })
    expect(conversation.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
  })

  test('a player that gives up leaves a cut episode', async () => {
    const bundle = await makeBundle(store)
    const { outcome } = await playTask(bundle, 'buy', () => undefined)
    expect(outcome.end).toEqual({ kind: 'cut', by: 'replies' })
    expect(outcome.scores['stock']).toEqual({ value: 0 })
  })

  test('a bundle that works in a sandbox is refused where there is none', async () => {
    const bundle = await makeBundle({ manifest: { sandbox: {} } })
    const needs = { tools: true, images: true, changedHead: true }
    await expect(bundleSource(bundle).prepare(needs, quiet())).rejects.toThrow(/pass "sandboxes"/)
    const env = bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1 })
    await expect(env.start(quiet())).rejects.toThrow(UnsupportedError)
  })

  test('scores of a finished episode come under the names of the steps that its task records', async () => {
    const parts = {
      ...store,
      tasks: [{ ...(store.tasks![0] as Task), steps: ['polite'] }],
      manifest: { ...store.manifest, reward: undefined },
    }
    const { scores } = await scored(await started(await envOf(parts)))
    expect(Object.keys(scores)).toEqual(['polite'])
  })
})
