import { forUniverse, type LoadContext } from '@tiltyard/bundle'
import { ConfigError, unknownName } from '@tiltyard/core'

import { customer } from './src/customer.ts'
import { benchmarkText, checkFiles } from './src/data/files.ts'
import { readEvals, readTasks } from './src/data/tasks.ts'
import { readToolSpecs } from './src/data/tool-specs.ts'
import { readStore, type Store } from './src/store.ts'
import { readSystem } from './src/system.ts'
import { retailTools } from './src/tools/tools.ts'
import { type Compat, compats } from './src/tools/writes.ts'
import { assertions, told } from './src/verifiers.ts'

const { defineBundle } = forUniverse<Store>()

export const bundle = defineBundle({
  check: checkFiles,
  universe: async (load) => readStore(await benchmarkText(load, 'db.json')),
  system: readSystem,
  tools: async (load) => retailTools(await readToolSpecs(load), compatOf(load)),
  unknownTool: (name) => `Error: Tool '${name}' not found.`,
  tasks: readTasks,
  evals: readEvals,
  users: { customer },
  verifiers: { told, assertions },
})

/** @throws ConfigError for a setting that there isn't. */
function compatOf({ settings: { compat: name = '' } }: LoadContext): Compat {
  const compat = compats.find((known) => known === name)
  if (compat !== undefined) return compat
  const given = typeof name === 'string' ? name : JSON.stringify(name)
  throw new ConfigError('settings', [{ at: '', message: unknownName('compat', given, compats) }])
}
