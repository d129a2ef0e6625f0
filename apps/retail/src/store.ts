/** The shop's database as the benchmark keeps it, with an index beside it. */
export interface Store {
  readonly products: Readonly<Record<string, Product>>
  readonly users: Readonly<Record<string, User>>
  readonly orders: Readonly<Record<string, Order>>
  /** Made from the tables when they are read. No tool changes what it holds. */
  readonly index: StoreIndex
}

export interface StoreIndex {
  /** Product id of each item. */
  readonly products: Readonly<Record<string, string>>
  /** Item ids of each product in the order of the file, which objects don't keep: digits as keys are sorted. */
  readonly listing: Readonly<Record<string, readonly string[]>>
  /** User ids by `emailKey` and `nameKey`. */
  readonly users: Readonly<Record<string, string>>
}

export interface Product {
  readonly name: string
  readonly product_id: string
  readonly variants: Readonly<Record<string, Variant>>
}

export type Options = Readonly<Record<string, string>>

export interface Variant {
  readonly item_id: string
  readonly options: Options
  readonly available: boolean
  readonly price: number
}

export interface Address {
  readonly address1: string
  readonly address2: string
  readonly city: string
  readonly country: string
  readonly state: string
  readonly zip: string
}

export type PaymentMethod =
  | { readonly source: 'paypal'; readonly id: string }
  | {
      readonly source: 'credit_card'
      readonly id: string
      readonly brand: string
      readonly last_four: string
    }
  | { readonly source: 'gift_card'; readonly id: string; readonly balance: number }

export interface User {
  readonly user_id: string
  readonly name: { readonly first_name: string; readonly last_name: string }
  readonly address: Address
  readonly email: string
  readonly payment_methods: Readonly<Record<string, PaymentMethod>>
  readonly orders: readonly string[]
}

export interface Item {
  readonly name: string
  readonly product_id: string
  readonly item_id: string
  readonly price: number
  readonly options: Options
}

export interface Payment {
  readonly transaction_type: 'payment' | 'refund'
  readonly amount: number
  readonly payment_method_id: string
}

export interface Order {
  readonly order_id: string
  readonly user_id: string
  readonly address: Address
  readonly items: readonly Item[]
  /** `pending`, `processed`, `delivered`, `cancelled`, and what tools make of it. */
  readonly status: string
  readonly fulfillments: readonly {
    readonly tracking_id: readonly string[]
    readonly item_ids: readonly string[]
  }[]
  readonly payment_history: readonly Payment[]
  readonly cancel_reason?: string
  readonly exchange_items?: readonly string[]
  readonly exchange_new_items?: readonly string[]
  readonly exchange_payment_method_id?: string
  readonly exchange_price_difference?: number
  readonly return_items?: readonly string[]
  readonly return_payment_method_id?: string
}

/** Fields that an order gets from tools, in the order in which the benchmark shows them: null where there are none. */
export const laterOrderFields = [
  'cancel_reason',
  'exchange_items',
  'exchange_new_items',
  'exchange_payment_method_id',
  'exchange_price_difference',
  'return_items',
  'return_payment_method_id',
] as const satisfies readonly (keyof Order)[]

type Tables = Omit<Store, 'index'>

/** @throws SyntaxError for a text that is no JSON, TypeError for one without the three tables. */
export function readStore(text: string): Store {
  const tables = JSON.parse(text) as Tables
  for (const name of ['products', 'users', 'orders'] as const)
    if (typeof tables[name] !== 'object') throw new TypeError(`the store has no table "${name}"`)
  // A sign before the digits makes a key keep its place.
  const { products: inOrder } = JSON.parse(text.replaceAll(/"(\d+)"(?=\s*:)/g, '"#$1"')) as Tables
  const listing = Object.fromEntries(
    Object.values(inOrder).map(({ product_id, variants }) => [
      product_id,
      Object.values(variants).map(({ item_id }) => item_id),
    ]),
  )
  const { products, users, orders } = tables
  return {
    products,
    users,
    orders,
    index: {
      products: Object.fromEntries(
        Object.entries(listing).flatMap(([product, items]) => items.map((item) => [item, product])),
      ),
      listing,
      users: Object.fromEntries(
        Object.entries(users).flatMap(([id, { email, name, address }]) => [
          [emailKey(email), id],
          [nameKey(name.first_name, name.last_name, address.zip), id],
        ]),
      ),
    },
  }
}

export function emailKey(email: string): string {
  return email.toLowerCase()
}

/** Case counts in none of its parts but the zip code. */
export function nameKey(first: string, last: string, zip: string): string {
  return JSON.stringify([first.toLowerCase(), last.toLowerCase(), zip])
}
