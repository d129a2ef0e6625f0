import { ConfigError } from '@tiltyard/core'
import { createGateway, serveGateway } from '@tiltyard/gateway'
import { folderLedgerStore, tinkerServer } from '@tiltyard/tinker-server'
import type { TrainingConfig } from '@tiltyard/train'
import type { Command } from 'commander'

import { exitCodes, type Terminal, untilInterrupted } from '../exit.ts'
import { PLACE_HELP } from '../open-index.ts'
import { screenLogger } from '../output/logger.ts'
import { createScreen } from '../output/screen.ts'
import { wholeNumber } from './arguments.ts'
import { serveOpenEnv } from './serve-openenv.ts'
import { servedPolicies, type ServedChoice } from './served-policies.ts'
import { type RecipeFlags, readTraining } from './training-recipe.ts'

interface ServeFlags extends RecipeFlags, ServedChoice {
  readonly host?: string
  readonly port?: number
  readonly key?: readonly string[]
  readonly ledger?: string
  readonly advertise?: string
}

/** Serves what a recipe trains: the service's protocol over its backend, or one of its policies to agents; or a bundle's tasks. */
export function serveCommand(
  program: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  const serve = program
    .command('serve')
    .description('serve a recipe’s backend or policy, or a bundle, on this machine')
  place(serve.command('tinker').description('the Tinker protocol over the recipe’s backend'))
    .option(
      '--ledger <folder>',
      'keeps what clients know of their checkpoints, so that a server that starts again has them (default: in memory)',
    )
    .option(
      '--advertise <address>',
      'how clients reach it, for the addresses of archives: behind a proxy that ends TLS',
    )
    .action(async (recipe: string, flags: ServeFlags) => {
      await serving(recipe, flags, terminal, async ({ backend, renderer }, logger) => {
        const server = tinkerServer({
          backend,
          logger,
          endTokens: renderer.stop.tokens,
          ...(flags.key === undefined ? {} : { keys: flags.key }),
          ...(flags.ledger === undefined ? {} : { ledger: folderLedgerStore(flags.ledger) }),
          ...(flags.advertise === undefined ? {} : { advertise: flags.advertise }),
        })
        const address = await server.listen(placeOf(flags))
        return { line: `serving the Tinker protocol at ${address}`, close: () => server.close() }
      })
      done(exitCodes.success)
    })

  place(
    serve
      .command('gateway')
      .description('an OpenAI-compatible endpoint over a checkpoint, with a page to try it'),
  )
    .option('--run <name>', 'the run whose checkpoint is served (default: the recipe’s)')
    .option('--index <place>', `${PLACE_HELP} (default: the recipe’s)`)
    .option('--step <n>', 'its checkpoint after so many steps (default: the newest)', wholeNumber)
    .option('--model', 'the untrained model instead')
    .option(
      '--beside <version>',
      'one more, to compare: `model`, a step, a run, or <run>:<step>; may be given again',
      (version: string, before: readonly string[]) => [...before, version],
      [],
    )
    .action(async (recipe: string, flags: ServeFlags) => {
      await serving(recipe, flags, terminal, async (config, logger) => {
        const [key, ...more] = flags.key ?? []
        if (more.length > 0)
          throw new ConfigError('serve gateway', [
            { at: '--key', message: 'the gateway lets in one key; name one' },
          ])
        const { policies, lines } = await servedPolicies(config, flags)
        const gateway = createGateway({
          serving: key === undefined ? {} : { key },
          policies,
          // Who compares versions must not get another one for a slip of the pen; a single one answers to any name.
          strictModels: Object.keys(policies).length > 1,
          logger,
        })
        const server = await serveGateway(gateway, placeOf(flags))
        const address = `http://${server.host}:${server.port}`
        return {
          line: [...lines, `serving at ${address}/v1 (try it at ${address}/)`].join('\n'),
          close: async () => {
            await server.close()
            await gateway.close()
          },
        }
      })
      done(exitCodes.success)
    })

  serveOpenEnv(serve, terminal, done)
}

function placeOf({ host, port }: ServeFlags) {
  return { ...(host === undefined ? {} : { host }), ...(port === undefined ? {} : { port }) }
}

/** Serves until the first interrupt, then closes everything in order. */
async function serving(
  recipe: string,
  flags: ServeFlags,
  terminal: Terminal,
  start: (
    config: TrainingConfig,
    logger: ReturnType<typeof screenLogger>,
  ) => Promise<{ readonly line: string; readonly close: () => Promise<void> }>,
): Promise<void> {
  const config = await readTraining(recipe, flags, terminal)
  const screen = createScreen({ stream: terminal.stdout, env: terminal.env })
  const logger = screenLogger(screen)
  config.backend.logTo?.(logger)
  try {
    const { line, close } = await start(config, logger)
    screen.line(line)
    screen.line('Ctrl-C ends it')
    await untilInterrupted(terminal.interrupts)
    await close()
  } finally {
    await config.backend.close()
    await config.index.close()
  }
}

/** What every face takes. */
function place(command: Command): Command {
  return command
    .argument('<recipe>')
    .option('--host <address>', 'beyond this machine a key is needed (default: 127.0.0.1)')
    .option('--port <n>', 'default: any that is free', wholeNumber)
    .option('--key <secret...>', 'keys that are let in')
    .option('--export <name>', 'which export of the recipe, when it has several')
}
