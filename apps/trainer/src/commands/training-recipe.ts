import type { Training, TrainingConfig } from '@tiltyard/train'

import type { Terminal } from '../exit.ts'
import { openIndex } from '../open-index.ts'
import { importModule, pickExport } from '../recipe.ts'

export interface RecipeFlags {
  readonly export?: string
  /** Where the runs lie, instead of what the recipe says. */
  readonly index?: string
}

/** The training that a recipe exports, over the run index that a person named or else its own. @throws ConfigError */
export async function readTraining(
  recipe: string,
  flags: RecipeFlags,
  { env }: Terminal,
): Promise<TrainingConfig> {
  const { config } = pickExport(recipe, await importModule(recipe), {
    what: 'training (what defineTraining returns)',
    is: isTraining,
    name: flags.export,
  })
  if (flags.index === undefined) return config
  const index = await openIndex(flags.index, env)
  await config.index.close()
  return { ...config, index }
}

function isTraining(value: unknown): value is Training {
  return (
    typeof value === 'object' &&
    value !== null &&
    'specVersion' in value &&
    value.specVersion === 'training/1'
  )
}
