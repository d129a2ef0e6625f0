import { type Bundle, bundleSource, rewardRule } from '@tiltyard/bundle'
import { openenvServer } from '@tiltyard/openenv'
import type { Command } from 'commander'

import { exitCodes, type Terminal, untilInterrupted } from '../exit.ts'
import { screenLogger } from '../output/logger.ts'
import { createScreen } from '../output/screen.ts'
import { wholeNumber } from './arguments.ts'
import { type LoadFlags, openBundle, withLoadFlags } from './bundle.ts'

interface ServeOpenEnvFlags extends LoadFlags {
  readonly host?: string
  readonly port?: number
  readonly key?: readonly string[]
  readonly sessions?: number
  readonly reward?: string
}

/** Serves a bundle's tasks as an OpenEnv environment, until the first interrupt. */
export function serveOpenEnv(
  serve: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  withLoadFlags(serve.command('openenv'))
    .description('a bundle’s tasks as an OpenEnv environment')
    .argument('<bundle>', 'folder of the bundle')
    .option('--reward <step>', 'the scoring step that is the reward (default: the bundle’s rule)')
    .option('--sessions <n>', 'clients at the same time (default: 16)', wholeNumber)
    .option('--host <address>', 'beyond this machine a key is needed (default: 127.0.0.1)')
    .option('--port <n>', 'default: any that is free', wholeNumber)
    .option('--key <secret...>', 'keys that are let in')
    .action(async (folder: string, flags: ServeOpenEnvFlags) => {
      const { host, port, key, sessions, reward } = flags
      const bundle = await openBundle(folder, flags, terminal)
      const screen = createScreen({ stream: terminal.stdout, env: terminal.env })
      const source = bundleSource(bundle)
      const server = openenvServer({
        source,
        reward: ruleOf(bundle, reward),
        splits: [...bundle.evals.keys()],
        logger: screenLogger(screen),
        ...(key === undefined ? {} : { keys: key }),
        ...(sessions === undefined ? {} : { limits: { sessions } }),
      })
      try {
        const address = await server.listen({
          ...(host === undefined ? {} : { host }),
          ...(port === undefined ? {} : { port }),
        })
        screen.line(`serving ${bundle.tasks.ids.length} tasks of ${bundle.name} at ${address}`)
        screen.line('Ctrl-C ends it')
        await untilInterrupted(terminal.interrupts)
      } finally {
        await server.close()
        await source.close()
      }
      done(exitCodes.success)
    })
}

function ruleOf(bundle: Bundle, step: string | undefined) {
  return step === undefined
    ? (bundle.reward ?? rewardRule(undefined, bundle.steps))
    : rewardRule(step, bundle.steps)
}
