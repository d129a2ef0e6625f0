import { readFileSync } from 'node:fs'

import { TiltyardError } from '@tiltyard/core'
import { Command, CommanderError } from 'commander'

import { bundleCommand } from './commands/bundle.ts'
import { doctorCommand } from './commands/doctor.ts'
import { evalCommand } from './commands/eval.ts'
import { exploreCommand } from './commands/explore.ts'
import { indexCommand } from './commands/index.ts'
import { playCommand, type PlayInput } from './commands/play.ts'
import { serveCommand } from './commands/serve.ts'
import { trainCommand } from './commands/train.ts'
import { exitCodes, type Terminal } from './exit.ts'
import { explain, isListenError } from './explain.ts'

/** The program: arguments in, exit code out. */
export async function main(
  args: readonly string[],
  terminal: Terminal & PlayInput,
): Promise<number> {
  let code: number = exitCodes.success
  const done = (result: number) => {
    code = result
  }
  const program = new Command('tiltyard')
    .description('Trains LLM agents by reinforcement learning.')
    .version(version())
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
    })
    .exitOverride()
  for (const add of [
    trainCommand,
    evalCommand,
    playCommand,
    serveCommand,
    indexCommand,
    exploreCommand,
    bundleCommand,
    doctorCommand,
  ]) {
    add(program, terminal, done)
  }
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.success : exitCodes.usage
    }
    if (terminal.interrupts.soft.aborted) return exitCodes.interrupted
    terminal.stderr.write(`${explain(error)}\n`)
    const typed = TiltyardError.is(error, 'CONFIG') || isListenError(error)
    return typed ? exitCodes.usage : exitCodes.failure
  }
}

function version(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
