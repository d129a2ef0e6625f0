import {
  type Bundle,
  checkBundle,
  type Finding,
  goldReport,
  loadBundle,
  newBundle,
} from '@tiltyard/bundle'
import { type JsonObject, type JsonValue, NotFoundError, unknownName } from '@tiltyard/core'
import { type Command, InvalidArgumentError } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { printJson, printLines, table } from '../output/json.ts'
import { importByUrl } from '../recipe.ts'

interface BundleFlags extends LoadFlags {
  readonly json?: boolean
  readonly task?: string
  readonly eval?: string
}

/** What a person may say about how a bundle is loaded. */
export interface LoadFlags {
  readonly data?: string
  readonly set?: JsonObject
}

/** Loads a bundle whose module may be TypeScript. */
export async function openBundle(
  folder: string,
  { data, set }: LoadFlags,
  { env }: Terminal,
): Promise<Bundle> {
  return loadBundle(folder, {
    importModule: importByUrl,
    env,
    ...(data === undefined ? {} : { data }),
    ...(set === undefined ? {} : { settings: set }),
  })
}

/** Adds the options that `openBundle` takes. */
export function withLoadFlags(command: Command): Command {
  return command
    .option('--data <folder>', 'folder of the data that the bundle asks for')
    .option('--set <name=value>', 'a setting of the bundle; may be repeated', setting)
}

/** Collects `name=value` pairs; a value that is JSON counts as that, another as text. */
function setting(text: string, before: JsonObject = {}): JsonObject {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('expected name=value')
  return { ...before, [text.slice(0, at)]: jsonOrText(text.slice(at + 1)) }
}

function jsonOrText(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return text
  }
}

export function bundleCommand(
  program: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  const bundle = program.command('bundle').description('write, look at and check a bundle')

  bundle
    .command('new')
    .description('write a first bundle that loads, checks and trains')
    .argument('<folder>', 'an empty or new folder')
    .action(async (folder: string) => {
      const files = await newBundle(folder)
      printLines(
        terminal,
        files.map((file) => `wrote ${folder}/${file}`),
      )
      printLines(terminal, [
        '',
        `look at it:  tiltyard bundle list ${folder}`,
        `check it:    tiltyard bundle check ${folder}`,
      ])
      done(exitCodes.success)
    })

  withLoadFlags(bundle.command('list'))
    .description('tasks and evals')
    .argument('<folder>')
    .option('--eval <name>', 'only the tasks of one eval')
    .option('--json')
    .action(async (folder: string, flags: BundleFlags) => {
      list(await openBundle(folder, flags, terminal), flags, terminal)
      done(exitCodes.success)
    })

  withLoadFlags(bundle.command('check'))
    .description(
      'play every task with nothing and with its gold, and tell what an author wants to know',
    )
    .argument('<folder>')
    .option('--json')
    .action(async (folder: string, flags: BundleFlags) => {
      const report = await checkBundle(await openBundle(folder, flags, terminal), {
        signal: terminal.interrupts.soft,
      })
      if (flags.json === true) printJson(terminal, report)
      else printLines(terminal, reportLines(report))
      done(report.findings.some(isFault) ? exitCodes.failure : exitCodes.success)
    })

  withLoadFlags(bundle.command('gold'))
    .description("carry out each task's gold calls and print what they change, by JSON Pointer")
    .argument('<folder>')
    .option('--task <id>', 'only this task')
    .option('--json')
    .action(async (folder: string, flags: BundleFlags) => {
      const loaded = await openBundle(folder, flags, terminal)
      const ids = flags.task === undefined ? loaded.tasks.ids : [loaded.tasks.get(flags.task).id]
      const reports = []
      for (const id of ids)
        reports.push(await goldReport(loaded, id, { signal: terminal.interrupts.soft }))
      if (flags.json === true) {
        printJson(terminal, {
          bundle: loaded.name,
          fingerprint: loaded.fingerprint,
          tasks: Object.fromEntries(reports.map((report) => [report.task, goldJson(report)])),
        })
      } else {
        printLines(terminal, reports.flatMap(goldLines))
      }
      done(exitCodes.success)
    })
}

function list(bundle: Bundle, { eval: name, json }: BundleFlags, terminal: Terminal): void {
  const ids = name === undefined ? bundle.tasks.ids : bundle.evals.get(name)
  if (ids === undefined)
    throw new NotFoundError(unknownName('eval', name ?? '', [...bundle.evals.keys()]))
  const tasks = ids.map((id) => bundle.tasks.get(id))
  const evals = Object.fromEntries([...bundle.evals].map(([of, members]) => [of, members.length]))
  if (json === true) {
    printJson(terminal, {
      bundle: bundle.name,
      fingerprint: bundle.fingerprint,
      steps: bundle.steps.map((step) => step.name),
      tools: [...bundle.tools.keys()],
      evals,
      tasks: tasks.map(({ id, tags }) => ({ id, tags })),
    })
    return
  }
  printLines(terminal, [
    `${bundle.name}${bundle.version === undefined ? '' : ` ${bundle.version}`}: ${bundle.description ?? ''}`.trimEnd(),
    `tools  ${[...bundle.tools.keys()].join(', ')}`,
    `steps  ${bundle.steps.map((step) => step.name).join(', ')}`,
    `evals  ${Object.entries(evals)
      .map(([of, count]) => `${of} (${count})`)
      .join(', ')}`,
    '',
    ...table(tasks.map(({ id, turns }) => [id, shortened(turns?.[0]?.prompt)])),
  ])
}

const MAX_LISTED_CHARS = 100

function shortened(prompt: unknown): string {
  const text = typeof prompt === 'string' ? prompt : (JSON.stringify(prompt) ?? '')
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > MAX_LISTED_CHARS ? `${line.slice(0, MAX_LISTED_CHARS)}…` : line
}

/** What makes `check` fail; the others are for the author to weigh. */
const faults: ReadonlySet<Finding['kind']> = new Set([
  'gold-call-fails',
  'gold-earns-less',
  'gold-differs',
  'breaks',
  'evals-overlap',
])

function isFault({ kind }: Finding): boolean {
  return faults.has(kind)
}

function reportLines({
  bundle,
  tasks,
  withoutGold,
  evals,
  findings,
}: Awaited<ReturnType<typeof checkBundle>>): readonly string[] {
  const sizes = Object.entries(evals).map(([name, count]) => `${name} ${count}`)
  return [
    `${bundle}: ${tasks} tasks (${withoutGold} without gold); ${sizes.join(', ')}`,
    ...table(findings.map(({ kind, at, task, message }) => [kind, at, task ?? '', message])),
    ...findings.flatMap(({ failure }) => (failure === undefined ? [] : [failure.stack])),
    findings.length === 0 ? 'nothing found' : `${findings.length} findings`,
  ]
}

/** Null stands for what isn't there, before or after. */
function goldJson({ calls, changes }: Awaited<ReturnType<typeof goldReport>>): JsonObject {
  return {
    gold_errors: calls.flatMap(({ name, error, result }) =>
      error === undefined ? [] : [{ name, error: result }],
    ),
    changes: changes.map(({ path, before = null, after = null }) => ({ path, before, after })),
  }
}

function goldLines({
  task,
  calls,
  changes,
  failures,
}: Awaited<ReturnType<typeof goldReport>>): readonly string[] {
  return [
    `${task}: ${counted(calls.length, 'call')}, ${counted(changes.length, 'change')}`,
    ...changes.map(
      ({ path, before, after }) =>
        `  ${path}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`,
    ),
    ...failures.map(({ stack }) => stack),
  ]
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
