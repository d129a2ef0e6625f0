import { forUniverse } from '@tiltyard/bundle'

import { bundle as desk } from '../../../trainer/bundles/desk/bundle.ts'
import type { Store } from '../../../trainer/bundles/desk/store.ts'
import { benchmarkText } from '../../src/data/files.ts'
import { readCustomers, storeOf, tasksOf } from './customers.ts'

const { defineBundle } = forUniverse<Store>()

/** The desk's tools and verifiers over the benchmark's customers and orders. */
export const bundle = defineBundle({
  tools: desk.tools!,
  verifiers: desk.verifiers!,
  universe: async (load) => storeOf(readCustomers(await benchmarkText(load, 'db.json'))),
  tasks: async (load) => tasksOf(readCustomers(await benchmarkText(load, 'db.json'))),
})
