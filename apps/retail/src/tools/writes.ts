import { type Draft, ToolError, type Universe } from '@tiltyard/bundle'
import type { JsonObject, JsonValue } from '@tiltyard/core'

import { entriesOf, keyOf, shown, textField } from '../arguments.ts'
import { roundCents } from '../python-text.ts'
import type { Address, Item, Order, Payment, Store, Variant } from '../store.ts'
import { findOrder, findPayment, findUser, found, member, orderText, userText } from './records.ts'

/** `upstream`: the benchmark as it is. `fixed`: each changed item of a pending order gets its own variant's price and options. */
export const compats = ['upstream', 'fixed'] as const
export type Compat = (typeof compats)[number]

/** All checks come before the first change, so an error changes nothing. */
type Write = (universe: Universe<Store>, args: JsonObject, compat: Compat) => string

const cancel: Write = (universe, args) => {
  const order = findOrder(universe.state, args['order_id']!)
  check(order.status === 'pending', 'Non-pending order cannot be cancelled')
  const reason = keyOf(args['reason']!)
  check(reason === 'no longer needed' || reason === 'ordered by mistake', 'Invalid reason')
  return changeOrder(universe, order, (draft, store) => {
    for (const { amount, payment_method_id } of order.payment_history)
      payBack(store, order.user_id, payment_method_id, amount)
    draft.payment_history.push(
      ...order.payment_history.map(({ amount, payment_method_id }) =>
        entry('refund', amount, payment_method_id),
      ),
    )
    draft.status = 'cancelled'
    draft.cancel_reason = reason!
  })
}

const orderAddress: Write = (universe, args) => {
  const order = findOrder(universe.state, args['order_id']!)
  check(order.status.includes('pending'), 'Non-pending order cannot be modified')
  const address = addressOf(args)
  return changeOrder(universe, order, (draft) => {
    draft.address = address
  })
}

const userAddress: Write = (universe, args) => {
  const { user_id } = findUser(universe.state, args['user_id']!)
  const address = addressOf(args)
  universe.update(({ users }) => {
    users[user_id]!.address = address
  })
  return userText(universe.state.users[user_id]!)
}

const payment: Write = (universe, args) => {
  const order = findOrder(universe.state, args['order_id']!)
  check(order.status.includes('pending'), 'Non-pending order cannot be modified')
  const method = methodOf(universe.state, order, args)
  const [first, ...others] = order.payment_history
  check(
    first?.transaction_type === 'payment' && others.length === 0,
    'There should be exactly one payment for a pending order',
  )
  const { amount, payment_method_id: before } = first!
  check(method.id !== before, 'The new payment method should be different from the current one')
  check(
    method.source !== 'gift_card' || method.balance >= amount,
    'Insufficient gift card balance to pay for the order',
  )
  return changeOrder(universe, order, (draft, store) => {
    draft.payment_history.push(entry('payment', amount, method.id), entry('refund', amount, before))
    payBack(store, order.user_id, method.id, -amount)
    payBack(store, order.user_id, before, amount)
  })
}

const items: Write = (universe, args, compat) => {
  const { state } = universe
  const order = findOrder(state, args['order_id']!)
  check(order.status === 'pending', 'Non-pending order cannot be modified')
  const old = wantedItems(order, args['item_ids']!, (id) => `${id} not found`)
  const wanted = entriesOf(args['new_item_ids']!)
  check(old.length === wanted.length, 'The number of items to be exchanged should match')
  const pairs = old.map((item, index) => {
    check(
      item.item_id !== wanted[index],
      'The new item id should be different from the old item id',
    )
    return { item, variant: availableVariant(state, item, wanted[index]!) }
  })
  const difference = priceDifference(pairs)
  const method = methodOf(state, order, args)
  check(
    method.source !== 'gift_card' || method.balance >= difference,
    'Insufficient gift card balance to pay for the new item',
  )
  return changeOrder(universe, order, (draft, store) => {
    draft.payment_history.push(
      entry(difference > 0 ? 'payment' : 'refund', Math.abs(difference), method.id),
    )
    payBack(store, order.user_id, method.id, -difference)
    const last = pairs.at(-1)?.variant
    // The benchmark looks for each item anew among those that it has renamed by then, and gives all the last one's price.
    const places = placesOf(order, pairs)
    for (const [index, { item, variant }] of pairs.entries()) {
      const target =
        compat === 'fixed'
          ? draft.items[places[index]!]!
          : draft.items.find(({ item_id }) => item_id === item.item_id)!
      const { price, options } = compat === 'fixed' ? variant : last!
      target.item_id = variant.item_id
      target.price = price
      target.options = { ...options }
    }
    draft.status = 'pending (item modified)'
  })
}

const exchange: Write = (universe, args) => {
  const { state } = universe
  const order = findOrder(state, args['order_id']!)
  check(order.status === 'delivered', 'Non-delivered order cannot be exchanged')
  const old = wantedItems(order, args['item_ids']!, (id) => `Number of ${id} not found.`)
  const wanted = entriesOf(args['new_item_ids']!)
  check(old.length === wanted.length, 'The number of items to be exchanged should match.')
  const pairs = old.map((item, index) => ({
    item,
    variant: availableVariant(state, item, wanted[index]!),
  }))
  const difference = roundCents(priceDifference(pairs))
  const method = methodOf(state, order, args)
  check(
    method.source !== 'gift_card' || method.balance >= difference,
    'Insufficient gift card balance to pay for the price difference',
  )
  return changeOrder(universe, order, (draft) => {
    draft.status = 'exchange requested'
    draft.exchange_items = pairs.map(({ item }) => item.item_id).sort()
    draft.exchange_new_items = pairs.map(({ variant }) => variant.item_id).sort()
    draft.exchange_payment_method_id = method.id
    draft.exchange_price_difference = difference
  })
}

const giveBack: Write = (universe, args) => {
  const order = findOrder(universe.state, args['order_id']!)
  check(order.status === 'delivered', 'Non-delivered order cannot be returned')
  const method = methodOf(universe.state, order, args)
  check(
    method.source === 'gift_card' || method.id === order.payment_history[0]?.payment_method_id,
    'Payment method should be the original payment method',
  )
  const old = wantedItems(order, args['item_ids']!, () => 'Some item not found')
  return changeOrder(universe, order, (draft) => {
    draft.status = 'return requested'
    draft.return_items = old.map(({ item_id }) => item_id).sort()
    draft.return_payment_method_id = method.id
  })
}

function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new ToolError(otherwise)
}

/** Changes an order and says how it then looks. */
function changeOrder(
  universe: Universe<Store>,
  { order_id }: Order,
  change: (order: Draft<Order>, store: Draft<Store>) => void,
): string {
  universe.update((store) => change(store.orders[order_id]!, store))
  return orderText(universe.state.orders[order_id]!)
}

function methodOf(store: Store, { user_id }: Order, args: JsonObject) {
  return findPayment(findUser(store, user_id), args['payment_method_id']!)
}

/** The items of an order with these ids, each id at most as often as the order has it; equal ids give the first of them. */
function wantedItems(
  { items: all }: Order,
  ids: JsonValue,
  otherwise: (id: string) => string,
): readonly Item[] {
  const wanted = entriesOf(ids)
  return wanted.map((id) => {
    const ordered = all.filter(({ item_id }) => item_id === id)
    const asked = wanted.filter((other) => other === id).length
    if (asked > ordered.length || ordered[0] === undefined)
      throw new ToolError(otherwise(shown(id)))
    return ordered[0]
  })
}

function availableVariant({ products }: Store, { product_id }: Item, id: JsonValue): Variant {
  const variant = found(member(products[product_id]!.variants, id), 'Variant not found')
  check(variant.available, `New item ${variant.item_id} not found or available`)
  return variant
}

interface Pair {
  readonly item: Item
  readonly variant: Variant
}

/** Where each pair's item stands in the order; equal items one after the other. */
function placesOf({ items: all }: Order, pairs: readonly Pair[]): readonly number[] {
  const taken = new Set<number>()
  return pairs.map(({ item }) => {
    const place = all.findIndex(({ item_id }, at) => item_id === item.item_id && !taken.has(at))
    taken.add(place)
    return place
  })
}

/** Added up in the order of the list, as doubles. */
function priceDifference(pairs: readonly Pair[]): number {
  return pairs.reduce((sum, { item, variant }) => sum + (variant.price - item.price), 0)
}

/** Puts an amount on a payment method; only a gift card keeps a balance. */
function payBack(store: Draft<Store>, userId: string, methodId: string, amount: number): void {
  const method = store.users[userId]!.payment_methods[methodId]!
  if (method.source === 'gift_card') method.balance = roundCents(method.balance + amount)
}

function entry(
  transaction_type: Payment['transaction_type'],
  amount: number,
  payment_method_id: string,
): Payment {
  return { transaction_type, amount, payment_method_id }
}

function addressOf(args: JsonObject): Address {
  const field = (name: keyof Address) => textField(name, args[name]!)
  return {
    address1: field('address1'),
    address2: field('address2'),
    city: field('city'),
    country: field('country'),
    state: field('state'),
    zip: field('zip'),
  }
}

const addressFields = ['address1', 'address2', 'city', 'state', 'country', 'zip'] as const
const pairFields = ['order_id', 'item_ids', 'new_item_ids', 'payment_method_id'] as const

/** The tools that change the store, with the names of their parameters. */
export const writes = {
  cancel_pending_order: { parameters: ['order_id', 'reason'], write: cancel },
  exchange_delivered_order_items: { parameters: pairFields, write: exchange },
  modify_pending_order_address: { parameters: ['order_id', ...addressFields], write: orderAddress },
  modify_pending_order_items: { parameters: pairFields, write: items },
  modify_pending_order_payment: { parameters: ['order_id', 'payment_method_id'], write: payment },
  modify_user_address: { parameters: ['user_id', ...addressFields], write: userAddress },
  return_delivered_order_items: {
    parameters: ['order_id', 'item_ids', 'payment_method_id'],
    write: giveBack,
  },
} as const satisfies Readonly<
  Record<string, { readonly parameters: readonly string[]; readonly write: Write }>
>
