import { type CheckpointEvent, NotFoundError, type RunIndex, type SamplerRef } from '@tiltyard/core'
import { defineTraining, evaluate, type TrainingConfig } from '@tiltyard/train'
import type { Command } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { PLACE_HELP } from '../open-index.ts'
import { printJson } from '../output/json.ts'
import { screenLogger } from '../output/logger.ts'
import { createScreen } from '../output/screen.ts'
import { packageVersions } from '../recipe.ts'
import { wholeNumber } from './arguments.ts'
import { evaluationLine } from './narrator.ts'
import { freeRunName } from './runs.ts'
import { DATA_HELP, type RecipeFlags, readTraining } from './training-recipe.ts'

interface EvalFlags extends RecipeFlags {
  readonly run?: string
  readonly step?: number
  readonly model?: boolean
  readonly json?: boolean
}

export function evalCommand(
  program: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  program
    .command('eval')
    .description(
      "play a recipe's evaluations with a checkpoint of a run, or with the model as it is",
    )
    .argument('<recipe>')
    .option('--run <name>', "the run whose checkpoint is evaluated (default: the recipe's)")
    .option('--index <place>', `${PLACE_HELP} (default: the recipe's)`)
    .option('--step <n>', 'its checkpoint after so many steps (default: the newest)', wholeNumber)
    .option('--model', 'the untrained model instead')
    .option('--json')
    .option('--data <folder>', DATA_HELP)
    .option('--export <name>', 'which export of the recipe, when it has several')
    .action(async (recipe: string, flags: EvalFlags) => {
      done(await runEvaluation(recipe, flags, terminal))
    })
}

async function runEvaluation(
  recipe: string,
  flags: EvalFlags,
  terminal: Terminal,
): Promise<number> {
  const config = await readTraining(recipe, flags, terminal)
  const screen = createScreen({
    stream: flags.json === true ? terminal.stderr : terminal.stdout,
    env: terminal.env,
  })
  config.backend.logTo?.(screenLogger(screen))
  try {
    const chosen = await chooseSampler(config, flags)
    const run = await freeRunName(config.index, `${chosen.run}-eval`)
    screen.line(`evaluating ${chosen.what}; the plays are recorded as ${run}`)
    const reports = await evaluate(defineTraining({ ...config, run }), chosen, {
      stop: terminal.interrupts.soft,
      signal: terminal.interrupts.soft,
      logger: screenLogger(screen),
      versions: packageVersions(),
    })
    if (flags.json === true) printJson(terminal, reports)
    else for (const report of reports) screen.line(evaluationLine(report))
    return exitCodes.success
  } finally {
    screen.done()
    await config.backend.close()
    await config.index.close()
  }
}

interface Chosen {
  readonly of: SamplerRef
  readonly step: number
  readonly run: string
  readonly what: string
}

/** Which weights a person named: a run's checkpoint, or the model. @throws NotFoundError saying what there is. */
export async function chooseSampler(
  { index, model, run: recipeRun }: TrainingConfig,
  flags: Pick<EvalFlags, 'run' | 'step' | 'model'>,
): Promise<Chosen> {
  const run = flags.run ?? recipeRun
  if (flags.model === true) return { of: { model }, step: 0, run, what: `${model} as it is` }
  const { name, step, sampling } = await checkpointOf(index, run, flags.step)
  return { of: { checkpoint: sampling }, step, run, what: `checkpoint ${name} of ${run}` }
}

async function checkpointOf(index: RunIndex, run: string, step: number | undefined) {
  const { checkpoints } = await index.run(run)
  const usable = checkpoints.filter(hasSampler)
  const found =
    step === undefined ? usable.at(-1) : usable.find((checkpoint) => checkpoint.step === step)
  if (found !== undefined) return found
  const there = usable.map((checkpoint) => checkpoint.step).join(', ')
  const hint =
    there === ''
      ? 'a training writes the first at its first save; --model takes the untrained model'
      : `there is ${there}`
  throw new NotFoundError(
    `${run} has no checkpoint to sample from${there === '' || step === undefined ? '' : ` after ${step} steps`}; ${hint}`,
  )
}

function hasSampler(
  event: CheckpointEvent,
): event is CheckpointEvent & Required<Pick<CheckpointEvent, 'sampling'>> {
  return event.sampling !== undefined
}
