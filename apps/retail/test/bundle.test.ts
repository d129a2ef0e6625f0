import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Bundle, bundleEnv, checkBundle, expectScore, playTask } from '@tiltyard/bundle'
import { type AssistantMessage, type Conversation, TiltyardError } from '@tiltyard/core'
import { beforeAll, describe, expect, test } from 'vitest'

import { describeWith } from '../../../test/support/machine.ts'
import { specsFromPython } from '../src/data/tool-specs.ts'
import type { Store } from '../src/store.ts'
import { loadRetail, retailData } from './support/data.ts'
import { pythonOf } from './support/python.ts'
import { randomCalls } from './support/walk.ts'

const long = 120_000
const signal = new AbortController().signal

const says = (content: string): AssistantMessage => ({ role: 'assistant', content })

/** What loading says is wrong. */
async function mistakeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (TiltyardError.is(error, 'CONFIG')) return error.message
    throw error
  }
  return 'nothing'
}

describe('without its data', () => {
  test('the bundle says where to get them and under which licence', async () => {
    const missing = await mistakeOf(loadRetail('/nowhere'))
    expect(missing).toMatch(/bundle\.json:\d+: a folder of data is needed, and there is no folder/)
    expect(missing).toContain('git clone https://github.com/sierra-research/tau2-bench')
    expect(missing).toContain('MIT License, Copyright (c) 2025 Sierra Research')
  })

  test('a folder that holds something else is told by the files that it lacks, once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tiltyard-retail-'))
    try {
      await writeFile(join(folder, 'tasks.json'), '[]')
      const wrong = await mistakeOf(loadRetail(folder))
      expect(wrong).toContain('it lacks db.json, split_tasks.json, policy.md, tools.json')
      expect(wrong.match(/it lacks/g)).toHaveLength(1)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('tools are read from Python: summary, more, arguments over several lines, types', () => {
    const source = `class RetailTools(ToolKitBase):
    def _helper(self, a: str) -> str:
        """Not a tool."""

    @is_tool(ToolType.WRITE)
    def swap_things(
        self,
        order_id: str,
        item_ids: List[str],
    ) -> Order:
        """Swaps things.
        Only once.

        Args:
            order_id: The order.
            item_ids: The items,
                     each once.

        Returns:
            Order: The order.
        """
        return order

    @is_tool(ToolType.READ)
    def list_things(self) -> str:
        """Lists things.

        Returns:
            str: JSON.
        """
`
    expect(specsFromPython(source)).toEqual([
      {
        name: 'swap_things',
        description: 'Swaps things.\n\nOnly once.',
        parameters: {
          properties: {
            order_id: { description: 'The order.', title: 'Order Id', type: 'string' },
            item_ids: {
              description: 'The items,\neach once.',
              items: { type: 'string' },
              title: 'Item Ids',
              type: 'array',
            },
          },
          required: ['order_id', 'item_ids'],
          title: 'parameters',
          type: 'object',
        },
      },
      {
        name: 'list_things',
        description: 'Lists things.',
        parameters: { properties: {}, title: 'parameters', type: 'object' },
      },
    ])
  })
})

describeWith(retailData, 'the retail bundle', (data) => {
  let bundle: Bundle
  beforeAll(async () => {
    bundle = await loadRetail(data)
  }, long)

  test('has the benchmark’s tools in its order, its tasks, its split, and parts of it', () => {
    expect([...bundle.tools.keys()]).toHaveLength(16)
    expect([...bundle.tools.keys()].slice(0, 3)).toEqual([
      'calculate',
      'cancel_pending_order',
      'exchange_delivered_order_items',
    ])
    expect(bundle.tasks.ids).toEqual(Array.from({ length: 114 }, (_, id) => String(id)))
    const sizes = Object.fromEntries([...bundle.evals].map(([name, ids]) => [name, ids.length]))
    expect(sizes).toEqual({
      train: 74,
      test: 40,
      'train-s1': 55,
      'train-solvable': 67,
      'test-solvable': 36,
      noop: 11,
      smoke: 5,
    })
    expect(bundle.system).toContain('# Retail agent policy')
  })

  test(
    'the check lists the 11 tasks that pay for doing nothing, and the failing gold of 105',
    async () => {
      const { findings } = await checkBundle(bundle)
      const tasksOf = (kind: string) => [
        ...new Set(findings.filter((it) => it.kind === kind).map(({ task }) => task)),
      ]
      expect(tasksOf('no-op')).toEqual(
        bundle.tasks.ids.filter((id) => bundle.evals.get('noop')!.includes(id)),
      )
      expect(tasksOf('no-op')).toHaveLength(11)
      expect(tasksOf('gold-call-fails')).toEqual(
        '2 3 4 35 37 38 39 46 47 54 55 64 67 68 105'.split(' '),
      )
      expect(
        findings.find(({ kind, task }) => kind === 'gold-call-fails' && task === '105')?.message,
      ).toBe(
        'the gold call exchange_delivered_order_items gives an error: Insufficient gift card balance to pay for the price difference',
      )
      expect(tasksOf('gold-order-matters')).toEqual(['22'])
      for (const kind of ['gold-earns-less', 'gold-differs', 'breaks', 'evals-overlap'])
        expect(tasksOf(kind), kind).toEqual([])
    },
    long,
  )

  test(
    'a checkout of the benchmark does as well as its files side by side',
    async () => {
      const folder = await realpath(await mkdtemp(join(tmpdir(), 'tiltyard-tau2-')))
      try {
        const retail = join(folder, 'data/tau2/domains/retail')
        const python = join(folder, 'src/tau2/domains/retail')
        await mkdir(retail, { recursive: true })
        await mkdir(python, { recursive: true })
        for (const file of ['db.json', 'tasks.json', 'split_tasks.json', 'policy.md'])
          await cp(join(data, file), join(retail, file))
        await writeFile(join(python, 'tools.py'), pythonOf(bundle))
        const checkout = await loadRetail(folder)
        expect([...checkout.tools.values()].map(({ spec }) => spec)).toEqual(
          [...bundle.tools.values()].map(({ spec }) => spec),
        )
        expect(checkout.system).toBe(bundle.system)
        expect([...checkout.evals]).toEqual([...bundle.evals])
        // Our own words for wishes that change lie beside the files only.
        expect(checkout.tasks.get('0')).toEqual(bundle.tasks.get('0'))
        expect(checkout.tasks.get('5').user?.options).not.toHaveProperty('resolved')
      } finally {
        await rm(folder, { recursive: true })
      }
    },
    long,
  )

  test('the customer hands in a ticket, says yes while it is asked, and ends when handed over', async () => {
    const seen: Conversation[] = []
    const player = (replies: readonly AssistantMessage[]) => {
      let next = 0
      return (conversation: Conversation) => {
        seen.push(conversation)
        next += 1
        return replies[next - 1]
      }
    }
    await playTask(bundle, '0', player([says('Shall I exchange both?'), says('Done.')]))
    const prompts = seen.at(-1)!.messages.filter(({ role }) => role === 'user')
    expect(prompts).toHaveLength(2)
    expect(prompts[0]!.content).toContain('Wish: You received your order')
    expect(prompts[0]!.content).toContain('Known: You are Yusuf Rossi in zip code 19122.')
    expect(prompts[1]!.content).toMatch(/^Yes, that is right/)
    const transfer = { id: 'c', name: 'transfer_to_human_agents', arguments: { summary: 's' } }
    const { calls } = await playTask(
      bundle,
      '10',
      player([{ ...says(''), toolCalls: [transfer] }, says('Please hold on. Anything else?')]),
    )
    expect(calls).toHaveLength(1)
  })

  test('a wish that changes is told as what it comes to', async () => {
    const env = bundleEnv(bundle, bundle.tasks.get('5'), { seed: 0 })
    const { messages } = await env.start(signal)
    expect(messages.at(-1)!.content).toContain('Wish: You want to return the water bottle')
    expect(messages.at(-1)!.content).not.toContain('Manner:')
    await env.end({ kind: 'cancelled' })
    await env.close()
  })

  test('the store is compared with the gold’s, and what must be told with what was said', async () => {
    const { calls } = bundle.tasks.get('3').gold!
    await expectScore(bundle, '3', [...calls, 'There are 10 options.'], { store: 1, told: 1 })
    await expectScore(bundle, '3', [...calls.slice(0, -1), 'There are many.'], {
      store: 0,
      told: 0,
    })
    await expectScore(bundle, '16', [...bundle.tasks.get('16').gold!.calls, '8,276.23 in all'], {
      store: 1,
      told: 1,
    })
  })

  test('eight episodes of one task at once each see the original store', async () => {
    const cancel = {
      id: 'c',
      name: 'cancel_pending_order',
      arguments: { order_id: '#W8367380', reason: 'ordered by mistake' },
    }
    const results = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const env = bundleEnv(bundle, bundle.tasks.get('0'), { seed: 0 })
        await env.start(signal)
        const step = await env.step(
          { ...says(''), toolCalls: [cancel, { ...cancel, id: 'd' }] },
          { signal, toolCallsLeft: 2 },
        )
        await env.end({ kind: 'cancelled' })
        await env.close()
        return step.calls!.map(({ error }) => error)
      }),
    )
    for (const errors of results)
      expect(errors).toEqual([undefined, 'Non-pending order cannot be cancelled'])
  })

  test(
    'with compat "fixed" the order of pairs stops to matter, and gold still equals itself',
    async () => {
      const fixed = await loadRetail(data, { settings: { compat: 'fixed' } })
      expect(fixed.fingerprint).not.toBe(bundle.fingerprint)
      for (const [of, same] of [
        [bundle, 0],
        [fixed, 1],
      ] as const) {
        const gold = of.tasks.get('20').gold!.calls
        const turned = gold.map((call) => {
          if (call.name !== 'modify_pending_order_items') return call
          const { item_ids, new_item_ids } = call.arguments as Record<string, readonly string[]>
          const pairs = {
            item_ids: item_ids!.toReversed(),
            new_item_ids: new_item_ids!.toReversed(),
          }
          return { ...call, arguments: { ...call.arguments, ...pairs } }
        })
        await expectScore(of, '20', [...turned, ''], { store: same })
        await expectScore(of, '20', [...gold, ''], { store: 1 })
      }
      const wrong = loadRetail(data, { settings: { compta: 'fixed' } })
      expect(await mistakeOf(wrong)).toContain('unknown setting "compta"; did you mean "compat"?')
      const unknown = loadRetail(data, { settings: { compat: 'fxied' } })
      expect(await mistakeOf(unknown)).toContain('did you mean "fixed"?')
    },
    long,
  )

  test(
    'after a thousand random calls balances are whole cents, no order is lost, the catalogue is as it was',
    () => {
      const universe = bundle.universe.open([])
      const start = universe.start as unknown as Store
      expect(randomCalls(bundle, universe, 1_000)).toBeGreaterThan(100)
      const end = universe.state as unknown as Store
      expect(end.products === start.products && end.index === start.index).toBe(true)
      expect(Object.keys(end.orders)).toEqual(Object.keys(start.orders))
      expect(end.orders === start.orders).toBe(false)
      const balances = Object.values(end.users)
        .flatMap(({ payment_methods }) => Object.values(payment_methods))
        .flatMap((method) => (method.source === 'gift_card' ? [method.balance] : []))
      expect(balances.filter((balance) => Number(balance.toFixed(2)) !== balance)).toEqual([])
    },
    long,
  )
})
