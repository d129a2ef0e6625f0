import type { JsonObject, JsonValue } from '@tiltyard/core'

import { keyOf, lowerCase } from '../arguments.ts'
import { pythonJson } from '../python-text.ts'
import { emailKey, nameKey, type Store } from '../store.ts'
import { findOrder, findUser, found, member, orderText, recordText, userText } from './records.ts'

type Read = (store: Store, args: JsonObject) => string

const findByEmail: Read = ({ index }, args) =>
  found(member(index.users, emailKey(lowerCase(args['email']!))), 'User not found')

const findByNameZip: Read = ({ index }, args) => {
  const [first, last] = [lowerCase(args['first_name']!), lowerCase(args['last_name']!)]
  const zip = args['zip']!
  const key = typeof zip === 'string' ? nameKey(first, last, zip) : undefined
  return found(key === undefined ? undefined : member(index.users, key), 'User not found')
}

const orderDetails: Read = (store, args) => orderText(findOrder(store, args['order_id']!))

const userDetails: Read = (store, args) => userText(findUser(store, args['user_id']!))

const itemDetails: Read = ({ products, index }, args) => {
  const id = args['item_id']!
  const product = found(member(index.products, id), 'Item not found')
  return pythonJson(products[product]!.variants[keyOf(id)!] as unknown as JsonValue)
}

/** With its variants in the order of the file. */
const productDetails: Read = ({ products, index }, args) => {
  const product = found(member(products, args['product_id']!), 'Product not found')
  return recordText(product, ({ name, product_id, variants }) => {
    const listed = index.listing[product_id]!.map(
      (item) => `"${item}": ${pythonJson(variants[item] as unknown as JsonValue)}`,
    )
    const head = pythonJson({ name, product_id }).slice(0, -1)
    return `${head}, "variants": {${listed.join(', ')}}}`
  })
}

const productTypes: Read = ({ products }) =>
  pythonJson(
    Object.fromEntries(Object.values(products).map(({ name, product_id }) => [name, product_id])),
    { sorted: true },
  )

/** The tools that only look, with the names of their parameters. */
export const reads = {
  find_user_id_by_name_zip: { parameters: ['first_name', 'last_name', 'zip'], read: findByNameZip },
  find_user_id_by_email: { parameters: ['email'], read: findByEmail },
  get_order_details: { parameters: ['order_id'], read: orderDetails },
  get_product_details: { parameters: ['product_id'], read: productDetails },
  get_item_details: { parameters: ['item_id'], read: itemDetails },
  get_user_details: { parameters: ['user_id'], read: userDetails },
  list_all_product_types: { parameters: [], read: productTypes },
} as const satisfies Readonly<
  Record<string, { readonly parameters: readonly string[]; readonly read: Read }>
>
