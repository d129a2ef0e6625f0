import {
  endName,
  episodeId,
  type EpisodeSummary,
  isRewarded,
  NotFoundError,
  parseEpisodeId,
  type RunIndex,
  type RunSummary,
} from '@tiltyard/core'
import type { Command } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { DEFAULT_RUNS, openIndex, PLACE_HELP } from '../open-index.ts'
import { printJson, printLines, table } from '../output/json.ts'
import { transcript } from '../output/transcript.ts'
import { wholeNumber } from './arguments.ts'
import { filterOf, type FilterFlags, withFilter } from './episode-filter.ts'
import { type ExportFlags, exportOptions, exportRuns } from './index-export.ts'

interface IndexFlags {
  /** Where the runs lie. */
  readonly index: string
  readonly json?: boolean
}

interface ShowFlags extends IndexFlags, FilterFlags {
  readonly limit: number
}

interface MetricsFlags extends IndexFlags {
  readonly split?: 'train' | 'eval'
  readonly timing?: boolean
}

/** Episodes listed when nothing else is said. */
const LISTED_EPISODES = 50

export function indexCommand(
  program: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  const command = program.command('index').description('look at recorded runs')
  const place = ['--index <place>', PLACE_HELP, DEFAULT_RUNS] as const
  const use = async (flags: IndexFlags, action: (index: RunIndex) => Promise<void>) => {
    const index = await openIndex(flags.index, terminal.env)
    try {
      await action(index)
      done(exitCodes.success)
    } finally {
      await index.close()
    }
  }

  command
    .command('ls')
    .description('the runs')
    .option(...place)
    .option('--json')
    .action(async (flags: IndexFlags) => use(flags, (index) => list(index, flags, terminal)))

  withFilter(
    command
      .command('show')
      .description("a run's episodes, or one of them whole")
      .argument('<run>')
      .argument('[episode]', 'its id, such as train/step-0007/g3/m1/a0')
      .option(...place)
      .option('--json'),
  )
    .option('--limit <n>', 'most episodes', wholeNumber, LISTED_EPISODES)
    .action(async (run: string, episode: string | undefined, flags: ShowFlags) =>
      use(flags, (index) =>
        episode === undefined
          ? showRun(index, run, flags, terminal)
          : showEpisode(index, run, episode, flags, terminal),
      ),
    )

  command
    .command('metrics')
    .description("a run's numbers, one line a step")
    .argument('<run>')
    .option(...place)
    .option('--json', 'as JSON lines')
    .option('--split <name>', 'train or eval')
    .option('--timing', 'times and rates too')
    .action(async (run: string, flags: MetricsFlags) =>
      use(flags, (index) => metrics(index, run, flags, terminal)),
    )

  exportOptions(
    command
      .command('export')
      .description('runs as tables for DuckDB, pandas and others: JSON lines or Parquet')
      .option(...place),
  ).action(async (runs: readonly string[], flags: IndexFlags & ExportFlags) =>
    use(flags, (index) => exportRuns(index, runs, flags, terminal)),
  )

  command
    .command('gc')
    .description(
      'remove what no reader sees: journals of episodes that ended, what a resume dropped, remains of a crash',
    )
    .argument('<run>')
    .option(...place)
    .option('--dry-run', 'only tell')
    .option('--json')
    .action(async (run: string, flags: IndexFlags & { readonly dryRun?: boolean }) =>
      use(flags, async (index) => {
        if (index.upkeep === undefined)
          throw new NotFoundError(`${index.name} can't look after itself`)
        const removed = await index.upkeep.collect(run, { dryRun: flags.dryRun === true })
        if (flags.json === true) printJson(terminal, removed)
        else
          printLines(terminal, [
            `${flags.dryRun === true ? 'would remove' : 'removed'} ${removed.blobs} files, ${removed.bytes} bytes`,
          ])
      }),
    )
}

async function list(index: RunIndex, { json }: IndexFlags, terminal: Terminal): Promise<void> {
  const runs: RunSummary[] = []
  for await (const run of index.runs()) runs.push(run)
  if (json === true) return printJson(terminal, runs)
  printLines(
    terminal,
    runs.length === 0
      ? [`no runs in ${index.name}`]
      : table(
          runs.map(({ name, status, step, startedAt, damage }) => [
            name,
            status,
            step === undefined ? 'no step yet' : `${step + 1} steps`,
            startedAt === undefined
              ? ''
              : new Date(startedAt).toISOString().slice(0, 16).replace('T', ' '),
            damage ?? '',
          ]),
        ),
  )
}

async function showRun(
  index: RunIndex,
  run: string,
  flags: ShowFlags,
  terminal: Terminal,
): Promise<void> {
  const { limit } = flags
  const shown: EpisodeSummary[] = []
  let more = false
  for await (const episode of index.episodes(run, filterOf(flags))) {
    if (shown.length === limit) {
      more = true
      break
    }
    shown.push(episode)
  }
  if (flags.json === true) return printJson(terminal, shown)
  printLines(terminal, table(shown.map(episodeRow)))
  if (more)
    printLines(terminal, [
      `(the first ${limit}; more with --limit, or fewer with --step, --task, --end)`,
    ])
}

function episodeRow({
  key,
  task,
  end,
  reward,
  advantage,
  trained,
  sampledTokens,
}: EpisodeSummary): readonly string[] {
  return [
    episodeId(key),
    task,
    end === undefined ? 'interrupted' : endName(end),
    reward === undefined ? '' : isRewarded(reward) ? `reward ${reward.reward}` : 'unscored',
    advantage === undefined ? '' : `advantage ${advantage.toFixed(3)}`,
    trained === undefined ? '' : trained === true ? 'trained' : trained,
    `${sampledTokens} tokens`,
  ]
}

async function showEpisode(
  index: RunIndex,
  run: string,
  id: string,
  { json }: ShowFlags,
  terminal: Terminal,
): Promise<void> {
  const key = parseEpisodeId(id)
  if (key === undefined) {
    throw new NotFoundError(
      `"${id}" is no episode's id; they look like train/step-0007/g3/m1/a0 (tiltyard index show ${run})`,
    )
  }
  const record = await index.episode(run, key)
  if (json !== true) return printLines(terminal, transcript(record))
  printJson(terminal, JSON.parse(JSON.stringify(record, plainArrays)))
}

/** For people and their scripts: token ids as lists of numbers. */
function plainArrays(_: string, value: unknown): unknown {
  if (value instanceof Int32Array || value instanceof Float32Array) return Array.from(value)
  return value
}

async function metrics(
  index: RunIndex,
  run: string,
  flags: MetricsFlags,
  terminal: Terminal,
): Promise<void> {
  const details = await index.run(run)
  const rows = details.metrics.filter(
    ({ split }) => flags.split === undefined || split === flags.split,
  )
  if (flags.json === true) {
    printLines(
      terminal,
      rows.map(({ split, evaluation, step, values, timing }) =>
        JSON.stringify({
          split,
          evaluation,
          step,
          values,
          ...(flags.timing === true ? { timing } : {}),
        }),
      ),
    )
    return
  }
  for (const { split, evaluation, step, values, timing } of rows) {
    const shown = { ...values, ...(flags.timing === true ? timing : {}) }
    const width = Math.max(...Object.keys(shown).map(({ length }) => length))
    printLines(terminal, [
      `${split}${evaluation === undefined ? '' : ` ${evaluation}`} step ${step}`,
      ...Object.entries(shown).map(
        ([name, value]) =>
          `  ${name.padEnd(width)}  ${value === null ? 'not finite' : format(value)}`,
      ),
    ])
  }
}

function format(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(6)
}
