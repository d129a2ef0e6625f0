import { DATA_VARIABLE } from '@tiltyard/bundle'
import type { Training, TrainingConfig } from '@tiltyard/train'

import type { Terminal } from '../exit.ts'
import { openIndex } from '../open-index.ts'
import { importModule, pickExport } from '../recipe.ts'

export interface RecipeFlags {
  readonly export?: string
  /** Where the runs lie, instead of what the recipe says. */
  readonly index?: string
  /** Folder for those of the recipe's bundles that ask for data. */
  readonly data?: string
}

export const DATA_HELP = 'folder of the data that a bundle of the recipe asks for'

/** The training that a recipe exports, over the run index that a person named or else its own. @throws ConfigError */
export async function readTraining(
  recipe: string,
  flags: RecipeFlags,
  { env }: Terminal,
): Promise<TrainingConfig> {
  // A recipe is a module that loads its bundles while it is imported, from the variables of its process.
  if (flags.data !== undefined) process.env[DATA_VARIABLE] = flags.data
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
