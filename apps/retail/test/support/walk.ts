import { type Bundle, ToolError, type ToolContext } from '@tiltyard/bundle'
import { type JsonObject, randomStream } from '@tiltyard/core'

import type { Order, Store } from '../../src/store.ts'

type UniverseState = ReturnType<Bundle['universe']['open']>

/** Carries out calls that mostly fit the store: each on a random order, with items and methods that it has. Returns how many wrote. */
export function randomCalls(bundle: Bundle, universe: UniverseState, count: number): number {
  const random = randomStream(7, 'walk')
  const pick = <T>(list: readonly T[]): T => list[random.integer(list.length)]!
  let written = 0
  for (let made = 0; made < count; made += 1) {
    const { orders, users, products } = universe.state as unknown as Store
    const order = orders[pick(Object.keys(orders))]!
    const payment = pick(Object.keys(users[order.user_id]!.payment_methods))
    const item = pick(order.items)
    const variant = pick(Object.keys(products[item.product_id]!.variants))
    const [name, args] = pick(callsOn(order, payment, item.item_id, variant))
    const before = universe.state
    const { universe: handle, release } = universe.handle()
    try {
      const { definition } = bundle.tools.get(name)!
      void definition.run(args as never, { universe: handle } as unknown as ToolContext)
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
    } finally {
      release()
    }
    if (universe.state !== before) written += 1
  }
  return written
}

function callsOn(
  { order_id, user_id, address }: Order,
  payment_method_id: string,
  item: string,
  variant: string,
): readonly (readonly [string, JsonObject])[] {
  const pair = { order_id, item_ids: [item], new_item_ids: [variant], payment_method_id }
  return [
    ['cancel_pending_order', { order_id, reason: 'no longer needed' }],
    ['modify_pending_order_payment', { order_id, payment_method_id }],
    ['modify_pending_order_items', pair],
    ['exchange_delivered_order_items', pair],
    ['return_delivered_order_items', { order_id, item_ids: [item], payment_method_id }],
    ['modify_pending_order_address', { order_id, ...address, zip: '00000' }],
    ['modify_user_address', { user_id, ...address, zip: '00000' }],
  ]
}
