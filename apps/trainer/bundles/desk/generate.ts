/**
 * Makes the desk's customers and tasks: `tsx generate.ts` writes universe.json and tasks.jsonl beside this file. The same
 * seed gives the same bytes; a test compares them with what is committed.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import type { TaskInput } from '@tiltyard/bundle'
import { type RandomStream, randomStream } from '@tiltyard/core'

import { type Customer, type Order, statuses } from './store.ts'

/** Seed of the files that are committed. */
export const DESK_SEED = 2026
const CUSTOMERS = 3000
/** The customers from here on are held out: no train task is about them. */
const HELD_OUT_FROM = 2850

const firstNames =
  'Aarav Ada Aiko Amir Anna Carla Chen Daiki Elif Emma Fatima Finn Hana Ivan James Juan Lea Liam Lucia Mei Mia Noah Olga Omar Raj Sara Sofia Tariq Yara Yusuf'
const lastNames =
  'Ahmed Brown Costa Davis Diaz Evans Garcia Gupta Haas Ito Jansen Khan Kim Lee Lopez Moore Mori Muller Novak Okafor Patel Perez Rossi Sato Silva Singh Smith Tanaka Weber Young'

export interface Desk {
  readonly universe: {
    readonly users: Readonly<Record<string, Customer>>
    readonly orders: Readonly<Record<string, Order>>
  }
  readonly tasks: readonly TaskInput[]
}

export function generateDesk(seed: number): Desk {
  const users: Record<string, Customer> = {}
  const orders: Record<string, Order> = {}
  const random = randomStream(seed, 'desk', 'customers')
  const pick = picker(random)
  const fresh = unique()
  for (let index = 0; index < CUSTOMERS; index += 1) {
    const first = pick(firstNames.split(' '))
    const last = pick(lastNames.split(' '))
    const plain = `${first}_${last}`.toLowerCase()
    const id = fresh(() => `${plain}_${digits(random, 4)}`)
    const order = fresh(() => `W${digits(random, 4)}`)
    users[id] = {
      name: { first, last },
      zip: fresh(
        () => `${random.integer(5) < 2 ? '0' : 1 + random.integer(9)}${digits(random, 4)}`,
      ),
      email: fresh(() => `${plain.replace('_', '.')}${digits(random, 2)}@example.com`),
      order,
    }
    orders[order] = { user: id, status: pick(statuses) }
  }
  return { universe: { users, orders }, tasks: tasksFor(seed, users, orders) }
}

interface Kind {
  readonly name: string
  readonly wordings: readonly string[]
  readonly calls: readonly ('name' | 'email' | 'order' | 'user')[]
  readonly asks: 'id' | 'status'
}

const kinds: readonly Kind[] = [
  {
    name: 'id-name',
    asks: 'id',
    calls: ['name'],
    wordings: [
      "I'm {name}, zip {zip}. What is my user id?",
      'User id of {name}, zip {zip}?',
      'My name is {name}, my zip code is {zip}. I forgot my user id.',
      'Please find the user id of {name} in {zip}.',
    ],
  },
  {
    name: 'id-email',
    asks: 'id',
    calls: ['email'],
    wordings: [
      'My e-mail is {email}. What is my user id?',
      'User id of {email}?',
      'I forgot my user id. My e-mail is {email}.',
      'Please find the user id of {email}.',
    ],
  },
  {
    name: 'status-order',
    asks: 'status',
    calls: ['order'],
    wordings: [
      'Where is my order {order}?',
      'Status of order {order}?',
      "I'm waiting for order {order}. What is its status?",
      'Please check order {order}.',
    ],
  },
  {
    name: 'status-name',
    asks: 'status',
    calls: ['name', 'user'],
    wordings: ["I'm {name}, zip {zip}. Where is my order?", 'Order status of {name}, zip {zip}?'],
  },
  {
    name: 'status-email',
    asks: 'status',
    calls: ['email', 'user'],
    wordings: ['My e-mail is {email}. Where is my order?', 'Order status of {email}?'],
  },
]

function tasksFor(
  seed: number,
  users: Desk['universe']['users'],
  orders: Desk['universe']['orders'],
): TaskInput[] {
  const pick = picker(randomStream(seed, 'desk', 'tasks'))
  const counts = new Map<string, number>()
  const oneCall = kinds.filter(({ calls }) => calls.length === 1)
  const twoCalls = kinds.filter(({ calls }) => calls.length > 1)
  return Object.entries(users).flatMap(([id, customer], index) => {
    const held = index >= HELD_OUT_FROM
    const every = [...oneCall, twoCalls[(index >> 2) % twoCalls.length]!]
    return [every[index % every.length]!].map((kind): TaskInput => {
      const number = counts.get(kind.name) ?? 0
      counts.set(kind.name, number + 1)
      const answer = kind.asks === 'id' ? id : orders[customer.order]!.status
      const name = `${customer.name.first} ${customer.name.last}`
      const values: Readonly<Record<string, string>> = { name, ...flat(customer) }
      const prompt = pick(kind.wordings).replaceAll(/\{(\w+)\}/g, (_, key: string) => values[key]!)
      return {
        id: `${kind.name}-${String(number).padStart(4, '0')}`,
        turns: [{ prompt }],
        gold: {
          calls: kind.calls.map((call) => goldCall(call, id, customer)),
          replies: [reply(kind.asks, answer)],
        },
        expect: { answer },
        tags: [
          held ? 'test' : 'train',
          kind.calls.length === 1 ? 'one-call' : 'two-calls',
          kind.name,
        ],
      }
    })
  })
}

/** What a good agent says at the end. */
export function reply(asks: Kind['asks'], answer: string): string {
  return asks === 'id' ? `Your user id is ${answer}.` : `Your order is ${answer}.`
}

function goldCall(
  by: Kind['calls'][number],
  id: string,
  { name, zip, email, order }: Customer,
): NonNullable<TaskInput['gold']>['calls'][number] {
  const byName = { first_name: name.first, last_name: name.last, zip }
  if (by === 'name') return { name: 'find_user_id_by_name_zip', arguments: byName }
  if (by === 'email') return { name: 'find_user_id_by_email', arguments: { email } }
  return { name: 'get_order_status', arguments: { id: by === 'order' ? order : id } }
}

function flat({ zip, email, order }: Customer): Readonly<Record<string, string>> {
  return { zip, email, order }
}

function picker(random: RandomStream): <T>(items: readonly T[]) => T {
  return (items) => items[random.integer(items.length)]!
}

function digits(random: RandomStream, count: number): string {
  return String(random.integer(10 ** count)).padStart(count, '0')
}

/** Draws until a text comes that never came before. */
function unique(): (draw: () => string) => string {
  const seen = new Set<string>()
  return (draw) => {
    let text = draw()
    while (seen.has(text)) text = draw()
    seen.add(text)
    return text
  }
}

function section(name: string, entries: object): string {
  const lines = Object.entries(entries).map(
    ([key, value]) => `    ${JSON.stringify(key)}: ${JSON.stringify(value)}`,
  )
  return `  "${name}": {\n${lines.join(',\n')}\n  }`
}

/** The files' text, by name: one customer, order or task a line. */
export function deskFiles(desk: Desk): Readonly<Record<string, string>> {
  const { users, orders } = desk.universe
  return {
    'universe.json': `{\n${section('users', users)},\n${section('orders', orders)}\n}\n`,
    'tasks.jsonl': desk.tasks.map((task) => `${JSON.stringify(task)}\n`).join(''),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(deskFiles(generateDesk(DESK_SEED))))
    writeFileSync(new URL(name, import.meta.url), text)
}
