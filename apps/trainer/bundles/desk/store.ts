/** The desk's universe: customers and orders, each by id. */
export interface Store {
  readonly users: Readonly<Record<string, Customer>>
  readonly orders: Readonly<Record<string, Order>>
}

export interface Customer {
  readonly name: { readonly first: string; readonly last: string }
  /** Five digits, kept as text: many begin with zero. */
  readonly zip: string
  readonly email: string
  /** The customer's one order. */
  readonly order: string
}

export interface Order {
  readonly user: string
  readonly status: string
}

export const statuses: readonly string[] = [
  'pending',
  'packed',
  'shipped',
  'delivered',
  'cancelled',
  'returned',
]
