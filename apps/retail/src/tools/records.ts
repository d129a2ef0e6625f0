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

/** A member that a record or table has itself. */
export function member<T>(of: Readonly<Record<string, T>>, id: JsonValue): T | undefined {
  const key = keyOf(id)
  return key !== undefined && Object.hasOwn(of, key) ? of[key] : undefined
}

export function found<T>(value: T | undefined, otherwise: string): T {
  if (value === undefined) throw new ToolError(otherwise)
  return value
}

/** An order as the benchmark shows it: fields that it doesn't have yet as null. */
export function orderText(order: Order): string {
  return pythonJson(wholeOrder(order))
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
  return pythonJson(user as unknown as JsonValue)
}
