import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { pathToFileURL } from 'node:url'

import { tinkerBackend, type TinkerOptions } from '@tiltyard/backend-tinker'
import { ConfigError, unknownName } from '@tiltyard/core'
import {
  backendFeatures,
  planBackendCheck,
  runCases,
  type BackendCheck,
  type BackendFeature,
  type BackendUse,
  type CaseResult,
} from '@tiltyard/testkit'
import { loadTokenizer } from '@tiltyard/tokenizer'
import { InvalidArgumentError, type Command } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { table } from '../output/json.ts'
import { screenLogger } from '../output/logger.ts'
import { createScreen, paint, type Screen } from '../output/screen.ts'
import { positiveInteger } from './arguments.ts'
import type { PlayInput } from './play.ts'

interface BackendFlags {
  readonly model?: string
  readonly rank: number
  readonly tolerance?: number
  readonly learningRate?: number
  readonly tokenizer?: string
  readonly lacks: readonly string[]
  readonly atOnce: number
  readonly timeout: number
  readonly yes: boolean
}

export function doctorBackendCommand(
  doctor: Command,
  terminal: Terminal & PlayInput,
  done: (code: number) => void,
): void {
  doctor
    .command('backend')
    .description(
      'check a live Tinker service against what a backend promises; the key comes from TINKER_API_KEY',
    )
    .argument('<url>', 'base address of the service')
    .option('--model <name>', 'default: the only one that the service has')
    .option('--rank <n>', 'of the adapters', positiveInteger, 8)
    .option(
      '--tolerance <nats>',
      'for log-probabilities that should be equal (default: 0.0001; in bfloat16 some 0.05)',
      positiveNumber,
    )
    .option('--learning-rate <rate>', 'moves them by much more (default: 0.01)', positiveNumber)
    .option('--tokenizer <tokenizer.json>', 'the model’s; without it stop strings are left out')
    .option('--lacks <feature...>', 'what the service doesn’t claim to do', [])
    .option('--at-once <n>', 'checks under way at the same time', positiveInteger, 4)
    .option('--timeout <seconds>', 'for each call of the service', positiveInteger, 300)
    .option('--yes', 'spend what it costs without asking', false)
    .action(async (url: string, flags: BackendFlags) => {
      done(await checkService(url, flags, terminal))
    })
}

async function checkService(
  url: string,
  flags: BackendFlags,
  terminal: Terminal & PlayInput,
): Promise<number> {
  const screen = createScreen({ stream: terminal.stdout, env: terminal.env })
  const options: TinkerOptions = {
    baseUrl: url,
    apiKey: keyFor(url, terminal),
    logger: screenLogger(screen),
    tags: ['tiltyard doctor'],
    deadlines: {
      retries: 1_000 * Math.min(flags.timeout, 60),
      sample: 1_000 * flags.timeout,
      training: 1_000 * flags.timeout,
    },
  }
  const { model, tolerance, learningRate, tokenizer } = flags
  const check = await planBackendCheck({
    create: () => tinkerBackend(options),
    lacks: declared(flags.lacks),
    ...(model !== undefined && { model }),
    ...(flags.rank !== 8 && { adaptation: { rank: flags.rank, seed: 1 } }),
    ...(tolerance !== undefined && { tolerance }),
    ...(learningRate !== undefined && { learningRate }),
    ...(tokenizer !== undefined && { decode: await decoder(tokenizer) }),
  })
  announce(screen, check)
  if (!flags.yes && !(await agreed(terminal, screen))) return exitCodes.usage
  return run(screen, check, flags.atOnce, terminal.interrupts.soft)
}

/** On this machine any key does, where the service wants none. */
function keyFor(url: string, { env }: Terminal): string {
  const key = env['TINKER_API_KEY'] ?? ''
  if (key !== '') return key
  const host = URL.canParse(url) ? new URL(url).hostname : ''
  if (['127.0.0.1', 'localhost', '[::1]'].includes(host)) return 'tml-local'
  throw new ConfigError('TINKER_API_KEY', [{ at: '', message: `is not set; ${url} wants a key` }])
}

function declared(lacks: readonly string[]): Partial<Record<BackendFeature, string>> {
  const mistakes = lacks
    .filter((name) => !backendFeatures.some((it) => it === name))
    .map((name) => ({ at: name, message: unknownName('feature', name, backendFeatures) }))
  if (mistakes.length > 0) throw new ConfigError('--lacks', mistakes)
  return Object.fromEntries(lacks.map((name) => [name, 'declared with --lacks']))
}

async function decoder(file: string): Promise<(ids: Int32Array) => string> {
  await readFile(file).catch((error: unknown) => {
    throw new ConfigError('--tokenizer', [{ at: file, message: 'it can’t be read' }], {
      cause: error,
    })
  })
  const tokenizer = await loadTokenizer(pathToFileURL(file))
  return (ids) => tokenizer.decode(ids)
}

function announce(screen: Screen, { described, model, adaptation, cases, atMost }: BackendCheck) {
  const { dim } = paint(screen)
  const how = adaptation === 'full' ? 'whole' : `adapters of rank ${adaptation.rank}`
  screen.line(`${described.executor}: ${model}, ${how}`)
  const skipped = cases.filter(({ skip }) => skip !== undefined)
  screen.line(`${cases.length - skipped.length} promises to check, for at most`)
  for (const line of usage(atMost)) screen.line(`  ${line}`)
  for (const reason of new Set(skipped.map(({ skip }) => skip)))
    screen.line(dim(`left out: ${reason}`))
}

function usage(use: Readonly<BackendUse>): readonly string[] {
  const count = (value: number) => value.toLocaleString('en-US').padStart(9)
  return table([
    ['prompt tokens', count(use.promptTokens)],
    ['sampled tokens', count(use.sampledTokens)],
    ['forward tokens', count(use.forwardTokens)],
    ['trained tokens', count(use.trainedTokens)],
    ['models in training', count(use.learners), 'each unloaded after its check'],
    ['checkpoints', count(use.checkpoints), 'deleted at the end'],
  ])
}

async function agreed(terminal: Terminal & PlayInput, screen: Screen): Promise<boolean> {
  if (terminal.stdout.isTTY !== true) {
    screen.line('nothing was sent yet; add --yes to go on')
    return false
  }
  const reader = createInterface({ input: terminal.stdin, output: terminal.stdout })
  try {
    const answer = await reader.question('go on? [y/N] ', { signal: terminal.interrupts.soft })
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    reader.close()
  }
}

async function run(
  screen: Screen,
  check: BackendCheck,
  atOnce: number,
  signal: AbortSignal,
): Promise<number> {
  const stop = () => void check.stop()
  signal.addEventListener('abort', stop, { once: true })
  const counts = { passed: 0, failed: 0, skipped: 0 }
  try {
    for await (const result of runCases(check.cases, { atOnce, signal })) {
      counts[result.outcome] += 1
      for (const line of told(screen, result)) screen.line(line)
    }
  } finally {
    signal.removeEventListener('abort', stop)
    await check.stop()
  }
  screen.line('used')
  for (const line of usage(check.used)) screen.line(`  ${line}`)
  const { passed, failed, skipped } = counts
  screen.line(`${passed} passed, ${failed} failed, ${skipped} left out`)
  if (signal.aborted) return exitCodes.interrupted
  return failed === 0 ? exitCodes.success : exitCodes.failure
}

function told(screen: Screen, { name, outcome, reason, milliseconds }: CaseResult) {
  const { dim, red, green } = paint(screen)
  if (outcome === 'skipped') return [dim(`– ${name} (${String(reason)})`)]
  if (outcome === 'passed')
    return [`${green('✓')} ${name} ${dim(`${(milliseconds / 1_000).toFixed(1)} s`)}`]
  const why = reason instanceof Error ? reason.message : String(reason)
  return [`${red('✗')} ${name}`, why.replaceAll(/^/gm, '    ')]
}

function positiveNumber(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value
  throw new InvalidArgumentError(`expected a number above 0, got "${text}"`)
}
