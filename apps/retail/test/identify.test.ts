import { fileURLToPath } from 'node:url'

import { checkBundle, goldPlayer, loadBundle, playTask } from '@tiltyard/bundle'
import { describe, expect, test } from 'vitest'

import { describeWith } from '../../../test/support/machine.ts'
import { type Database, readCustomers, storeOf, tasksOf } from '../bundles/identify/customers.ts'
import { retailData } from './support/data.ts'

const folder = fileURLToPath(new URL('../bundles/identify', import.meta.url))

/** Ten made-up customers in the benchmark's form. */
const database: Database = {
  users: Object.fromEntries(
    Array.from({ length: 10 }, (_, index) => [
      `ada_novak_100${index}`,
      {
        name: { first_name: 'Ada', last_name: 'Novak' },
        address: { zip: `0100${index}` },
        email: `ada.novak${index}@example.com`,
        orders: index === 0 ? [] : [`#W${index}`, '#W99'],
      },
    ]),
  ),
  orders: { '#W1': { user_id: 'ada_novak_1001', status: 'processed' } },
}

describe('customers of a database', () => {
  test('are what the desk’s tools read; an order is the first one, or none', () => {
    const { users, orders } = storeOf(database)
    expect(users['ada_novak_1001']).toEqual({
      name: { first: 'Ada', last: 'Novak' },
      zip: '01001',
      email: 'ada.novak1@example.com',
      order: '#W1',
    })
    expect(users['ada_novak_1000']!.order).toBe('')
    expect(orders['#W1']).toEqual({ user: 'ada_novak_1001', status: 'processed' })
  })

  test('are asked about by name and by e-mail, one in five held out', () => {
    const tasks = tasksOf(database)
    // Ids of tasks begin with how it is asked and the customer.
    const customerOf = (id: string) => id.slice(id.indexOf('-') + 1, id.lastIndexOf('-'))
    const about = (split: string) =>
      new Set(tasks.filter(({ tags }) => tags!.includes(split)).map(({ id }) => customerOf(id)))
    expect(about('test').size).toBe(2)
    expect(about('train').size).toBe(8)
    expect([...about('test')].filter((id) => about('train').has(id))).toEqual([])
    // In every wording for training, in one for testing.
    expect(tasks).toHaveLength(8 * 2 * 4 + 2 * 2)
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(tasks.length)
    expect(tasksOf(database)).toEqual(tasks)
  })

  test('text that is no such database is refused', () => {
    expect(() => readCustomers('{"users": {}}')).toThrow('orders')
  })
})

test('without its data the bundle says where to get them and under which licence', async () => {
  await expect(loadBundle(folder, { data: '/nowhere' })).rejects.toThrow(
    /git clone https:\/\/github\.com\/sierra-research\/tau2-bench.*/,
  )
})

describeWith(retailData, 'the benchmark’s customers', (data) => {
  test('make a bundle that its author need not mend, and whose gold earns the reward', async () => {
    const bundle = await loadBundle(folder, { data })
    expect((await checkBundle(bundle)).findings).toEqual([])
    expect(bundle.evals.get('test')).toHaveLength(200)
    expect(bundle.evals.get('train')).toHaveLength(3200)
    for (const id of bundle.evals.get('test')!.slice(0, 20)) {
      const { outcome } = await playTask(bundle, id, goldPlayer(bundle.tasks.get(id)))
      expect(bundle.reward?.reward(outcome)).toEqual({ reward: 1 })
    }
  })
})
