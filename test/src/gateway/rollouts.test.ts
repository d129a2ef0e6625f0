import { promptIds, type GroupPlan, type Sampler, type TaskSource } from '@tiltyard/core'
import { agentSource, createGateway, type AgentContext, type AgentTask } from '@tiltyard/gateway'
import { createSlots, playGroup, type PlayedGroup, type RolloutOptions } from '@tiltyard/rollout'
import {
  charRenderer,
  charText,
  memoryRunIndex,
  scriptedSampler,
  simulatedClock,
  stepReward,
} from '@tiltyard/testkit'
import { assembleEpisode } from '@tiltyard/train'
import { describe, expect, test } from 'vitest'

interface Said {
  readonly role: string
  readonly content: string
}

/** One call; the messages are the conversation before it. */
async function ask(
  { model }: AgentContext,
  messages: readonly Said[],
  agent?: string,
): Promise<Said> {
  const response = await model.fetch(`${model.baseURL}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${model.apiKey}`,
      ...(agent === undefined ? {} : { 'x-tiltyard-agent': agent }),
    },
    body: JSON.stringify({ model: model.name, messages }),
  })
  const { choices } = (await response.json()) as { choices: readonly { message: Said }[] }
  return { role: 'assistant', content: choices[0]!.message.content }
}

const user = (content: string): Said => ({ role: 'user', content })
const system = (content: string): Said => ({ role: 'system', content })

interface Playing extends Partial<RolloutOptions> {
  readonly agent: (task: AgentTask, context: AgentContext) => Promise<number | void>
  readonly sampler?: Sampler
  readonly size?: number
}

/** A group of an agent's episodes, played by rollout itself. */
async function play({ agent, sampler, size = 1, ...options }: Playing): Promise<PlayedGroup> {
  const source: TaskSource = agentSource({ gateway: createGateway(), agent, tasks: [{ id: 'a' }] })
  for await (const task of source.tasks('all')) {
    const plan: GroupPlan = { source, task, size, reward: stepReward('reward'), seed: 1 }
    const played = scriptedSampler(({ index }) => `reply ${index}`)
    return playGroup(
      plan,
      { split: 'train', step: 3, group: 0 },
      {
        seed: 1,
        policy: { sampler: sampler ?? played, renderer: charRenderer(), sampling: {} },
        slots: createSlots(8),
        ...options,
      },
    )
  }
  throw new Error('no task')
}

/** Each shape of a history that agents make. */
const shapes: Readonly<Record<string, (context: AgentContext) => Promise<void>>> = {
  'a line': async (context) => {
    const messages = [user('go')]
    for (let turn = 0; turn < 4; turn += 1) messages.push(await ask(context, messages), user('on'))
  },
  'sub-agents at once': async (context) => {
    const main = [system('main'), user('go')]
    main.push(await ask(context, main))
    await Promise.all(
      ['left', 'right'].map(async (name) => {
        const own = [system(name), user('your part')]
        own.push(await ask(context, own, name), user('more'))
        await ask(context, own, name)
      }),
    )
    await ask(context, [...main, user('and so')])
  },
  'two ways on from one reply': async (context) => {
    const start = [user('go')]
    start.push(await ask(context, start))
    const left = [...start, user('left')]
    left.push(await ask(context, left))
    const right = [...start, user('right')]
    right.push(await ask(context, right))
    await ask(context, [...left, user('left again')])
    await ask(context, [...right, user('right again')])
  },
  'the same question twice': async (context) => {
    await ask(context, [user('go')])
    const second = await ask(context, [user('go')])
    await ask(context, [user('go'), second, user('on')])
  },
  'a summary instead of the history': async (context) => {
    const messages = [system('s'), user('go')]
    for (let turn = 0; turn < 2; turn += 1) messages.push(await ask(context, messages), user('on'))
    const short = [system('s'), user(`so far: ${messages.map(({ content }) => content).join(' ')}`)]
    short.push(await ask(context, short), user('on'))
    await ask(context, short)
  },
}

/** Data that each shape needs: a new one only where a prompt does not start with the tokens before it. */
const rows = {
  'a line': 1,
  'sub-agents at once': 3,
  'two ways on from one reply': 2,
  'the same question twice': 2,
  'a summary instead of the history': 2,
}

describe.each(Object.keys(rows) as (keyof typeof rows)[])('%s', (name) => {
  test('§18.59 §18.60 §18.61 trains each sampled id once, in as few rows as it takes', async () => {
    const { episodes } = await play({
      agent: async (_, context) => shapes[name]!(context),
    })
    const [episode] = episodes
    const data = assembleEpisode(episode!, 1)
    expect(data).toHaveLength(rows[name])
    const sampled = episode!.replies.reduce((sum, { sample }) => sum + sample.ids.length, 0)
    expect(data.reduce((sum, { trained }) => sum + trained, 0)).toBe(sampled)
    const trainedTexts = data.flatMap(({ datum, mask }) =>
      [...datum.targets].filter((_, at) => mask[at] === 1),
    )
    const sampledTexts = episode!.replies.flatMap(({ sample }) => [...sample.ids])
    expect(charText(trainedTexts.toSorted((a, b) => a - b))).toBe(
      charText(sampledTexts.toSorted((a, b) => a - b)),
    )
  })

  test('§18.67 the rows of the record are the rows of the play', async () => {
    const index = memoryRunIndex()
    const run = {
      version: 1,
      name: 'r',
      startedAt: 0,
      seed: 1,
      config: {},
      fingerprints: {},
      versions: {},
    } as const
    const writer = await index.claim(run, { expect: 'new' })
    const { episodes } = await play({
      writer,
      agent: async (_, context) => shapes[name]!(context),
    })
    await writer.flush()
    const { episode } = await index.episode('r', episodes[0]!.key)
    const played = assembleEpisode(episodes[0]!, 1)
    expect(played.map(({ index: place }) => place)).toEqual([...episode!.sequences.keys()])
    // Target i of a row is id i + 1 of its sequence.
    for (const { datum, mask, logprobs, index: place } of played) {
      const { ids, logprobs: stored, mask: marks } = episode!.sequences[place]!
      expect([...ids].slice(1)).toEqual([...datum.targets])
      expect([...stored].slice(1)).toEqual([...logprobs])
      expect([...marks].slice(1)).toEqual([...mask])
    }
    expect(episode!.replies).toHaveLength(episodes[0]!.replies.length)
    await writer.close()
  })
})

test('§18.81 a group of 16 with 8 slots ends although the first eight are cut', async () => {
  const clock = simulatedClock()
  let begun = 0
  let hanging = 0
  const group = await play({
    size: 16,
    clock,
    limits: { episodeMs: 300 },
    async agent(_, context) {
      begun += 1
      const hangs = begun <= 8
      await ask(context, [user('go')])
      if (!hangs) return 1
      hanging += 1
      // Time passes when all eight hang, and no more after.
      if (hanging === 8) void clock.advance(300)
      return new Promise(() => {})
    },
  })
  expect(group.episodes).toHaveLength(16)
  expect(group.episodes.filter(({ end }) => end.kind === 'cut')).toHaveLength(8)
  expect(group.dropped).toBeUndefined()
})

test('§18.76 F23 an agent that crashes is played again, and its crash is no zero', async () => {
  let plays = 0
  const group = await play({
    size: 4,
    failures: { kind: 'retry', retries: 1 },
    async agent(_, context) {
      plays += 1
      const isFirst = plays === 1
      await ask(context, [user('go')])
      if (isFirst) throw new Error('crash')
      return 0.5
    },
  })
  expect(plays).toBe(5)
  expect(group.failures).toHaveLength(1)
  expect(group.episodes.map(({ reward }) => reward)).toEqual(
    [1, 2, 3, 4].map(() => ({ reward: 0.5 })),
  )
})

test('§18.80 a retry’s prompts hold nothing of the attempt before it', async () => {
  let plays = 0
  const { episodes } = await play({
    failures: { kind: 'retry', retries: 1 },
    async agent(_, context) {
      plays += 1
      await ask(context, [user(`try ${plays}`)])
      if (plays === 1) throw new Error('crash')
      return 1
    },
  })
  expect(episodes[0]!.key.attempt).toBe(1)
  expect(episodes[0]!.replies.map(({ prompt }) => charText(promptIds(prompt)))).toEqual([
    '⟨user⟩try 2⟨end⟩⟨assistant⟩',
  ])
})

test('§18.83 §18.100 limits of the run reach the agent; calls, tokens and ends are counted', async () => {
  const { episodes } = await play({
    limits: { replies: 2 },
    async agent(_, context) {
      const messages = [user('go')]
      for (;;) messages.push(await ask(context, messages), user('on'))
    },
  })
  const [{ end, metrics, replies }] = episodes as [PlayedGroup['episodes'][number]]
  expect(end).toEqual({ kind: 'cut', by: 'replies' })
  expect(replies).toHaveLength(2)
  expect(metrics).toMatchObject({ calls: 2, untrained_samples: 0 })
  const sampled = replies.reduce((sum, { sample }) => sum + sample.ids.length, 0)
  expect(metrics['sampled_tokens']).toBe(sampled)
})

test('§18.100 what was sampled is what trains and what does not', async () => {
  const { episodes } = await play({
    async agent(_, context) {
      await ask(context, [user('go')])
      await ask(context, [system('rate it'), user('go')], 'critic')
      context.reward({ value: 1 })
      await ask(context, [user('too late')])
    },
  })
  const [episode] = episodes as [PlayedGroup['episodes'][number]]
  const { calls, sampled_tokens, untrained_samples, untrained_tokens } = episode.metrics
  expect({ calls, untrained_samples }).toEqual({ calls: 3, untrained_samples: 1 })
  const trained = assembleEpisode(episode, 1).reduce((sum, row) => sum + row.trained, 0)
  expect(trained).toBeGreaterThan(0)
  expect(trained + untrained_tokens!).toBe(sampled_tokens)
})

test('§18.87 an abort of the run ends its agents within two seconds', async () => {
  const abort = new AbortController()
  // No time passes but these two seconds.
  const clock = simulatedClock()
  const pass = async () => {
    for (let passed = 0; passed < 2_000; passed += 10) await clock.advance(10)
  }
  const group = play({
    size: 4,
    clock,
    signal: abort.signal,
    async agent(_, context) {
      await ask(context, [user('go')])
      if (!abort.signal.aborted) void pass()
      abort.abort(new Error('enough'))
      await new Promise(() => {})
    },
  })
  await expect(group).rejects.toThrow('enough')
})

test('§18.102 ended attempts leave nothing open, after thousands of them', async () => {
  const gateway = createGateway()
  const policy = { sampler: scriptedSampler(['x']), renderer: charRenderer(), sampling: {} }
  for (let rollout = 0; rollout < 2_000; rollout += 1) {
    const attempt = gateway.open({ rollout: 'same name', policy })
    await attempt.close()
  }
  expect(gateway.counts).toMatchObject({ open: 0, inFlight: 0 })
})
