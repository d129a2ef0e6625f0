import { ToolError } from '@tiltyard/bundle'
import type { JsonValue } from '@tiltyard/core'

import { keyOf } from '../arguments.ts'
import { pythonJson } from '../python-text.ts'
import {
  laterOrderFields,
  type Order,
  type PaymentMethod,
  type Store,
  type User,
} from '../store.ts'

export function findOrder({ orders }: Store, id: JsonValue): Order {
  return found(member(orders, id), 'Order not found')
}

export function findUser({ users }: Store, id: JsonValue): User {
  return found(member(users, id), 'User not found')
}

export function findPayment({ payment_methods }: User, id: JsonValue): PaymentMethod {
  return found(member(payment_methods, id), 'Payment method not found')
}

/** A member that a record or table has itself; no id is called as what every object has, such as `constructor`. */
export function member<T>(of: Readonly<Record<string, T>>, id: JsonValue): T | undefined {
  const key = keyOf(id)
  return key === undefined || key in Object.prototype ? undefined : of[key]
}

export function found<T>(value: T | undefined, otherwise: string): T {
  if (value === undefined) throw new ToolError(otherwise)
  return value
}

/** Texts of records. These never change, and episodes share those that they don't write to: each is printed once. */
const texts = new WeakMap<object, string>()

export function recordText<T extends object>(record: T, print: (record: T) => string): string {
  const known = texts.get(record)
  if (known !== undefined) return known
  const text = print(record)
  texts.set(record, text)
  return text
}

/** An order as the benchmark shows it: fields that it doesn't have yet as null. */
export function orderText(order: Order): string {
  return recordText(order, () => pythonJson(wholeOrder(order)))
}

export function wholeOrder(order: Order): JsonValue {
  const { order_id, user_id, address, items, status, fulfillments, payment_history } = order
  const later = Object.fromEntries(laterOrderFields.map((field) => [field, order[field] ?? null]))
  return {
    order_id,
    user_id,
    address,
    items,
    status,
    fulfillments,
    payment_history,
    ...later,
  } as unknown as JsonValue
}

export function userText(user: User): string {
  return recordText(user, () => pythonJson(user as unknown as JsonValue))
}
