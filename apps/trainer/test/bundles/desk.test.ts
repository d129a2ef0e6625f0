import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import {
  checkBundle,
  expectScore,
  goldPlayer,
  loadBundle,
  playTask,
  type Task,
  type Transcript,
} from '@tiltyard/bundle'
import { type Conversation, type JsonObject } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { deskDemonstrations } from '../../bundles/desk/demonstrations.ts'
import { DESK_SEED, deskFiles, generateDesk } from '../../bundles/desk/generate.ts'

const folder = fileURLToPath(new URL('../../bundles/desk', import.meta.url))
const bundle = await loadBundle(folder)
const desk = generateDesk(DESK_SEED)
const customers = Object.entries(desk.universe.users)

const tasksOf = (split: string): readonly Task[] =>
  (bundle.evals.get(split) ?? []).map((id) => bundle.tasks.get(id))

/** The customer that a task is about. */
function customerOf({ gold }: Task): string | undefined {
  const { first_name, last_name, zip, email, id } = gold!.calls[0]!.arguments as Record<
    string,
    string
  >
  return customers.find(
    ([, customer]) =>
      customer.email === email ||
      customer.order === id ||
      (customer.zip === zip &&
        customer.name.first === first_name &&
        customer.name.last === last_name),
  )?.[0]
}

/** The customers that an eval asks about, and the kinds of its questions. */
const about = (split: string) => new Set(tasksOf(split).map(customerOf))
const kinds = (split: string) => new Set(tasksOf(split).map(({ tags }) => tags?.at(-1)))

/** Share of the conversations whose last reply answers the question right. */
function rightShare(conversations: readonly Conversation[]): number {
  const tasks = new Map(tasksOf('train').map((task) => [task.turns![0]!.prompt, task]))
  const right = conversations.filter(({ messages }) => {
    const prompt = messages.find(({ role }) => role === 'user')?.content
    return messages.at(-1)?.content === tasks.get(prompt as string)?.gold?.replies?.[0]
  })
  return right.length / conversations.length
}

describe('the desk', () => {
  test('is what its generator makes from the seed, to the byte', () => {
    for (const [name, text] of Object.entries(deskFiles(desk)))
      expect(text === readFileSync(`${folder}/${name}`, 'utf8')).toBe(true)
  })

  test('is another desk with another seed', () => {
    expect(generateDesk(DESK_SEED + 1).universe).not.toEqual(desk.universe)
  })

  test('has at least 500 customers, known each by e-mail, by name and zip, and by order', () => {
    expect(customers.length).toBeGreaterThanOrEqual(500)
    const distinct = (key: (entry: (typeof customers)[number]) => string) =>
      new Set(customers.map(key)).size
    expect(distinct(([, { email }]) => email)).toBe(customers.length)
    expect(distinct(([, { order }]) => order)).toBe(customers.length)
    expect(distinct(([, { zip }]) => zip)).toBe(customers.length)
    const zeros = customers.filter(([, { zip }]) => zip.startsWith('0'))
    expect(zeros.length / customers.length).toBeGreaterThan(0.2)
  })

  test('shares no customer between training and testing, and asks in every way in both', () => {
    const [train, held] = [about('train'), about('test')]
    expect(train.has(undefined) || held.has(undefined)).toBe(false)
    expect([...held].filter((customer) => train.has(customer))).toEqual([])
    expect(kinds('test')).toEqual(kinds('train'))
    expect(kinds('test').size).toBe(5)
  })

  test('says in each prompt all that the first call needs', () => {
    for (const { turns, gold } of [...tasksOf('train'), ...tasksOf('test')]) {
      const prompt = turns![0]!.prompt as string
      for (const value of Object.values(gold!.calls[0]!.arguments)) expect(prompt).toContain(value)
    }
  })

  test('has nothing that its author should mend', async () => {
    expect((await checkBundle(bundle)).findings).toEqual([])
  })
})

describe('its scores', () => {
  const byName = bundle.tasks.get('id-name-0000')
  const [good] = byName.gold!.calls
  const [reply] = byName.gold!.replies!
  const other = bundle.tasks.get('id-name-0001').gold!.calls[0]!
  const wrongId = bundle.tasks.get('id-name-0001').expect!['answer'] as string

  test.each<[string, Transcript, { answer: number; calls: number }]>([
    ['the right call and the right answer', [good!, reply!], { answer: 1, calls: 1 }],
    [
      'names in another case',
      [{ ...good!, arguments: lowerCase(good!.arguments) }, reply!],
      { answer: 1, calls: 1 },
    ],
    ['an answer without a call', [reply!], { answer: 1, calls: 0 }],
    ['nothing', [''], { answer: 0, calls: 0 }],
    ['a needless call first', [other, good!, reply!], { answer: 1, calls: 0 }],
    ['the same call twice', [good!, good!, reply!], { answer: 1, calls: 0 }],
    [
      'a failed call first',
      [{ name: good!.name, arguments: { ...good!.arguments, zip: '1' } }, good!, reply!],
      { answer: 1, calls: 0 },
    ],
    ['a call about another customer', [other, reply!], { answer: 1, calls: 0 }],
    ['another customer’s id', [good!, `Your user id is ${wrongId}.`], { answer: 0, calls: 1 }],
    [
      'two ids, the right one among them',
      [good!, `${reply!} Or ${wrongId}.`],
      { answer: 0, calls: 1 },
    ],
    ['no answer: cut after the call', [good!], { answer: 0, calls: 1 }],
  ])('%s', async (_, transcript, scores) => {
    await expect(expectScore(bundle, byName.id, transcript, scores)).resolves.toBeDefined()
  })

  test('a list of all statuses is no answer', async () => {
    const task = bundle.tasks.get('status-order-0000')
    const guesses = 'It is pending, packed, shipped, delivered, cancelled or returned.'
    const transcript = [task.gold!.calls[0]!, guesses]
    const scores = { answer: 0, calls: 1 }
    await expect(expectScore(bundle, task.id, transcript, scores)).resolves.toBeDefined()
  })

  test('the reward is 1 for a right answer by the right calls, else 0', async () => {
    const rewardOf = async (shown: Task) => {
      const { outcome } = await playTask(bundle, byName.id, goldPlayer(shown))
      return bundle.reward?.reward(outcome)
    }
    expect(await rewardOf(byName)).toEqual({ reward: 1 })
    expect(await rewardOf(bundle.tasks.get('id-name-0001'))).toEqual({ reward: 0 })
  })
})

describe('its demonstrations', () => {
  test('show the system prompt, the tools, the call, its result and the answer', async () => {
    const [conversation] = await deskDemonstrations({
      bundle,
      seed: 1,
      count: 1,
      needlessShare: 0,
      split: 'train-one-call',
    })
    expect(conversation!.tools).toHaveLength(3)
    expect(conversation!.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
  })

  test('are the same for the same seed, and the first of many are those of few', async () => {
    const few = await deskDemonstrations({ bundle, seed: 5, count: 5 })
    const many = await deskDemonstrations({ bundle, seed: 5, count: 20 })
    expect(many.slice(0, 5)).toEqual(few)
    expect(await deskDemonstrations({ bundle, seed: 6, count: 5 })).not.toEqual(few)
  })

  test('are right, but half of them make a call that nobody needs', async () => {
    const count = 300
    const direct = await deskDemonstrations({ bundle, seed: 1, count, needlessShare: 0 })
    const all = await deskDemonstrations({ bundle, seed: 1, count })
    expect(rightShare(direct)).toBe(1)
    expect(rightShare(all)).toBe(1)
    const needless = all.filter(({ messages }, at) => messages.length > direct[at]!.messages.length)
    expect(needless.length / count).toBeGreaterThan(0.4)
    expect(needless.length / count).toBeLessThan(0.6)
  })

  test('without a head begin with the question', async () => {
    const options = { bundle, seed: 1, count: 20 }
    const whole = await deskDemonstrations(options)
    const short = await deskDemonstrations({ ...options, head: false })
    expect(short).toEqual(whole.map(({ messages }) => ({ messages: messages.slice(1) })))
  })

  test('are about training tasks only', async () => {
    const held = new Set(tasksOf('test').map(({ turns }) => turns![0]!.prompt))
    const conversations = await deskDemonstrations({ bundle, seed: 1, count: 200 })
    for (const { messages } of conversations)
      expect(held.has(messages[1]!.content as string)).toBe(false)
  })
})

function lowerCase(args: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [key, (value as string).toLowerCase()]),
  )
}
