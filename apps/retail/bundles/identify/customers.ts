import type { TaskInput } from '@tiltyard/bundle'
import { randomStream } from '@tiltyard/core'
import { z } from 'zod'

import { reply } from '../../../trainer/bundles/desk/generate.ts'
import type { Customer, Store } from '../../../trainer/bundles/desk/store.ts'

const databaseSchema = z.object({
  users: z.record(
    z.string(),
    z.object({
      name: z.object({ first_name: z.string(), last_name: z.string() }),
      address: z.object({ zip: z.string() }),
      email: z.string(),
      orders: z.array(z.string()),
    }),
  ),
  orders: z.record(z.string(), z.object({ user_id: z.string(), status: z.string() })),
})

export type Database = z.output<typeof databaseSchema>

/** What is asked about, of the text of the benchmark's db.json. @throws ZodError when it is something else. */
export function readCustomers(text: string): Database {
  return databaseSchema.parse(JSON.parse(text))
}

/** The database as the desk's tools read it. A customer's order is its first one; some have none. */
export function storeOf({ users, orders }: Database): Store {
  return {
    users: mapValues(users, ({ name, address, email, orders: [order = ''] }) => ({
      name: { first: name.first_name, last: name.last_name },
      zip: address.zip,
      email,
      order,
    })),
    orders: mapValues(orders, ({ user_id, status }) => ({ user: user_id, status })),
  }
}

const wordings = {
  name: [
    "I'm {name}, zip {zip}. What is my user id?",
    'User id of {name}, zip {zip}?',
    'My name is {name}, my zip code is {zip}. I forgot my user id.',
    'Please find the user id of {name} in {zip}.',
  ],
  email: [
    'My e-mail is {email}. What is my user id?',
    'User id of {email}?',
    'I forgot my user id. My e-mail is {email}.',
    'Please find the user id of {email}.',
  ],
} as const

/** One customer in five is held out: no train task is about it. */
const HELD_OUT = 5

/** Each customer is asked about by name and by e-mail: in every wording for training, in one for testing. */
export function tasksOf(database: Database): TaskInput[] {
  const { users } = storeOf(database)
  return randomStream(1, 'identify')
    .shuffle(Object.entries(users))
    .flatMap(([id, customer], index) =>
      (['name', 'email'] as const).flatMap((by) => {
        const held = index % HELD_OUT === 0
        const every = wordings[by].map((wording, place) => ({ wording, place }))
        const asked = held ? [every[(index / HELD_OUT) % every.length]!] : every
        return asked.map(({ wording, place }): TaskInput => {
          return {
            id: `${by}-${id}-${place}`,
            turns: [{ prompt: filled(wording, customer) }],
            gold: { calls: [call(by, customer)], replies: [reply('id', id)] },
            expect: { answer: id },
            tags: [held ? 'test' : 'train', by],
          }
        })
      }),
    )
}

function filled(wording: string, { name, zip, email }: Customer): string {
  return wording
    .replace('{name}', `${name.first} ${name.last}`)
    .replace('{zip}', zip)
    .replace('{email}', email)
}

function call(by: keyof typeof wordings, { name, zip, email }: Customer) {
  return by === 'name'
    ? {
        name: 'find_user_id_by_name_zip',
        arguments: { first_name: name.first, last_name: name.last, zip },
      }
    : { name: 'find_user_id_by_email', arguments: { email } }
}

function mapValues<Value, Mapped>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value) => Mapped,
): Readonly<Record<string, Mapped>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
}
