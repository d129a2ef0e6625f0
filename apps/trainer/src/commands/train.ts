import { withDeadline } from '@tiltyard/core'
import {
  defineTraining,
  describeTraining,
  train,
  type Training,
  type TrainingConfig,
} from '@tiltyard/train'
import type { Command } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { gitState } from '../git.ts'
import { PLACE_HELP } from '../open-index.ts'
import { screenLogger } from '../output/logger.ts'
import { createScreen, type Screen } from '../output/screen.ts'
import { packageVersions } from '../recipe.ts'
import { positiveInteger, wholeNumber } from './arguments.ts'
import { estimateLines, estimateTraining, type Prices, PRICES_HELP, readPrices } from './dry-run.ts'
import { createNarrator, type Narrator } from './narrator.ts'
import { freeRunName, unfinishedRun } from './runs.ts'
import { summarize } from './summary.ts'
import { DATA_HELP, type RecipeFlags, readTraining } from './training-recipe.ts'

interface TrainFlags extends RecipeFlags {
  readonly steps?: number
  readonly seed?: number
  readonly run?: string
  readonly resume?: boolean
  readonly takeOver?: boolean
  readonly allow?: readonly ('renderer' | 'dataset' | 'loss' | 'model')[]
  readonly dryRun?: boolean
  readonly prices?: Prices
}

export function trainCommand(
  program: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  program
    .command('train')
    .description('run a recipe: a module that exports what defineTraining returned')
    .argument('<recipe>', 'path of the recipe, TypeScript or JavaScript')
    .option('--steps <n>', 'training steps in all', positiveInteger)
    .option('--seed <n>', 'every random choice comes from it', wholeNumber)
    .option('--run <name>', "name of the run (default: the recipe's, numbered when it is taken)")
    .option('--index <place>', `${PLACE_HELP} (default: the recipe's)`)
    .option('--resume', "go on with the recipe's newest unfinished run, or with --run")
    .option('--take-over', 'resume although another process seems to write the run')
    .option('--allow <change...>', 'resume although this changed: renderer, dataset, loss, model')
    .option('--data <folder>', DATA_HELP)
    .option('--export <name>', 'which export of the recipe, when it has several')
    .option(
      '--dry-run',
      'tell the configuration, what would be played, and the most tokens it takes; needs no key',
    )
    .option('--prices <prefill,sample,train>', PRICES_HELP, readPrices)
    .action(async (recipe: string, flags: TrainFlags) => {
      done(await runTraining(recipe, flags, terminal))
    })
}

/** Trains, tells how it goes, and says what to type next. */
async function runTraining(recipe: string, flags: TrainFlags, terminal: Terminal): Promise<number> {
  const screen = createScreen({ stream: terminal.stdout, env: terminal.env })
  const config = await readTraining(recipe, flags, terminal)
  config.backend.logTo?.(screenLogger(screen))
  try {
    if (flags.dryRun === true) return await dryRun(config, flags, { terminal, screen })
    const named = flags.resume === true ? unfinishedRun : freeRunName
    const training = defineTraining({
      ...config,
      run: flags.run ?? (await named(config.index, config.run)),
      ...lengthAndSeed(flags),
    })
    const narrator = createNarrator(screen, training)
    // Until the run begins there is nothing to save: the first Ctrl-C ends it.
    const describing = { waitingFor: 'the backend', signal: terminal.interrupts.soft }
    narrator.opening(await withDeadline(() => config.backend.describe(), describing))
    const end = await follow(training, flags, { terminal, screen, narrator })
    screen.done()
    const lines = await summarize({
      training,
      recipe,
      flags,
      end,
      columns: screen.columns,
    })
    for (const line of lines) screen.line(line)
    return end === 'completed' ? exitCodes.success : exitCodes.interrupted
  } finally {
    screen.done()
    await config.backend.close()
    await config.index.close()
  }
}

function lengthAndSeed({ steps, seed }: TrainFlags): Pick<TrainingConfig, 'steps' | 'seed'> {
  return { ...(steps === undefined ? {} : { steps }), ...(seed === undefined ? {} : { seed }) }
}

/** Tells what the training would take. */
async function dryRun(
  recipe: TrainingConfig,
  flags: TrainFlags,
  { terminal, screen }: Pick<Following, 'terminal' | 'screen'>,
): Promise<number> {
  const training = defineTraining({ ...recipe, ...lengthAndSeed(flags) })
  const estimate = await estimateTraining(training, terminal.interrupts.soft)
  screen.line('the configuration, defaults and all:')
  for (const line of JSON.stringify(describeTraining(training.config), null, 2).split('\n'))
    screen.line(line)
  screen.line(`${recipe.run}: ${recipe.model}; nothing is sampled, nothing is sent`)
  for (const line of estimateLines(estimate, flags.prices)) screen.line(line)
  return exitCodes.success
}

interface Following {
  readonly terminal: Terminal
  readonly screen: Screen
  readonly narrator: Narrator
}

async function follow(
  training: Training,
  flags: TrainFlags,
  { terminal, screen, narrator }: Following,
): Promise<'completed' | 'interrupted'> {
  const { soft, hard } = terminal.interrupts
  const tell = () =>
    screen.line('stopping: the step under way is finished or dropped, then saved (again: at once)')
  soft.addEventListener('abort', tell, { once: true })
  const git = await gitState(process.cwd())
  try {
    const run = train(training, {
      start: flags.resume === true ? 'resume' : 'new',
      ...(flags.allow === undefined ? {} : { allowChanges: flags.allow }),
      ...(flags.takeOver === undefined ? {} : { takeOver: flags.takeOver }),
      stop: soft,
      signal: hard,
      logger: screenLogger(screen),
      observer: (event) => narrator.progress(event),
      versions: packageVersions(),
      ...(git === undefined ? {} : { git }),
    })
    for await (const report of run) narrator.step(report)
    return (await run.finish()).end
  } finally {
    soft.removeEventListener('abort', tell)
  }
}
