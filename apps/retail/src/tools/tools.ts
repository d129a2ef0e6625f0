import { ToolError, type ToolDefinition, type Universe } from '@tiltyard/bundle'
import type { JsonObject, ToolSpec } from '@tiltyard/core'

import { checkNames } from '../arguments.ts'
import { calculate } from '../calculate.ts'
import type { Store } from '../store.ts'
import { reads } from './reads.ts'
import { type Compat, writes } from './writes.ts'

export type RetailToolSpec = ToolSpec & { readonly description: string }

/** Tools that neither look into the store nor change it. */
const others = {
  calculate: {
    parameters: ['expression'],
    run: ({ expression }: JsonObject) => {
      if (typeof expression === 'string') return calculate(expression)
      throw new ToolError('Invalid characters in expression')
    },
  },
  transfer_to_human_agents: { parameters: ['summary'], run: () => 'Transfer successful' },
} as const

/** Of every tool, the parameters in the order in which the benchmark declares them. */
export const parametersOf: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries({ ...reads, ...writes, ...others }).map(([name, { parameters }]) => [
    name,
    parameters,
  ]),
)

/** Carries out one call. @throws ToolError, which shows the model the benchmark's own text. */
function callTool(
  name: string,
  universe: Universe<Store>,
  args: JsonObject,
  compat: Compat,
): string {
  try {
    checkNames(name, args, parametersOf[name]!)
    if (isKey(reads, name)) return reads[name].read(universe.state, args)
    if (isKey(writes, name)) return writes[name].write(universe, args, compat)
    return others[name as keyof typeof others].run(args)
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    throw new ToolError(error.message, { shown: `Error: ${error.message}`, cause: error })
  }
}

/** The sixteen tools, as the model is told of them by the data. */
export function retailTools(
  specs: readonly RetailToolSpec[],
  compat: Compat,
): readonly ToolDefinition<Store>[] {
  return specs.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
    ownChecks: true,
    run: (args: JsonObject, { universe }) => callTool(name, universe, args, compat),
  }))
}

function isKey<T extends object>(of: T, name: PropertyKey): name is keyof T {
  return Object.hasOwn(of, name)
}
