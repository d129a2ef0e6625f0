import { forUniverse, ToolError } from '@tiltyard/bundle'
import type { JsonObject, PlayedCall } from '@tiltyard/core'
import { z } from 'zod'

import { statuses, type Store } from './store.ts'

const { defineTool, defineVerifier, defineBundle } = forUniverse<Store>()

const findByNameZip = defineTool({
  name: 'find_user_id_by_name_zip',
  description: 'User id of a customer.',
  parameters: z.object({ first_name: z.string(), last_name: z.string(), zip: z.string() }),
  run: ({ first_name, last_name, zip }, { universe }) =>
    userId(universe.state.users, [first_name, last_name, zip]),
})

const findByEmail = defineTool({
  name: 'find_user_id_by_email',
  description: 'User id of a customer.',
  parameters: z.object({ email: z.string() }),
  run: ({ email }, { universe }) => userId(universe.state.users, [email]),
})

const orderStatus = defineTool({
  name: 'get_order_status',
  description: 'Order status by order number or user id.',
  parameters: z.object({ id: z.string() }),
  run: ({ id }, { universe: { state } }) => {
    const order = state.orders[state.users[id]?.order ?? id]
    if (order === undefined) throw new ToolError('order not found')
    return order.status
  },
})

type Users = Store['users']

/** User ids by what a customer is found by. A universe's tables never change, so each is gone through once. */
const directories = new WeakMap<Users, ReadonlyMap<string, string>>()

function userId(users: Users, findBy: readonly string[]): string {
  const directory = directories.get(users) ?? directoryOf(users)
  directories.set(users, directory)
  const id = directory.get(directoryKey(findBy))
  if (id === undefined) throw new ToolError('user not found')
  return id
}

function directoryOf(users: Users): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(users).flatMap(([id, { name, zip, email }]) => [
      [directoryKey([name.first, name.last, zip]), id],
      [directoryKey([email]), id],
    ]),
  )
}

/** The case of names and addresses doesn't count. */
function directoryKey(parts: readonly string[]): string {
  return JSON.stringify(parts).toLowerCase()
}

const facts = new RegExp(`\\b(?:[a-z]+_[a-z]+_\\d{4}|${statuses.join('|')})\\b`, 'g')

/** The last reply tells the right user id or status, and no other: a list of guesses is no answer. */
const answer = defineVerifier(({ task, answer: reply }) => {
  const told = new Set(reply.match(facts))
  const wanted = task.expect['answer']
  return told.size === 1 && typeof wanted === 'string' && told.has(wanted)
})

/** Each call that was needed was made once, and none failed or was needless. The gold's calls are the needed ones. */
const calls = defineVerifier(async ({ calls: made, gold }) => {
  const needed = (await gold()).calls.map(signature).sort()
  const done = made.map(signature).sort()
  return made.every(({ error }) => error === undefined) && done.join('\n') === needed.join('\n')
})

/** Equal for calls that mean the same: the order of arguments and the case of names don't count. */
function signature({ name, arguments: args }: PlayedCall): string {
  const values = Object.entries(args as JsonObject).map((entry) => JSON.stringify(entry))
  return [name, ...values.sort()].join(' ').toLowerCase()
}

export const bundle = defineBundle({
  tools: [findByNameZip, findByEmail, orderStatus],
  verifiers: { answer, calls },
})
