import { pathToFileURL } from 'node:url'

import { serveExplorer } from '@tiltyard/explorer'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import type { Command } from 'commander'

import { exitCodes, type Terminal, untilInterrupted } from '../exit.ts'
import { DEFAULT_RUNS, openIndex, PLACE_HELP } from '../open-index.ts'
import { screenLogger } from '../output/logger.ts'
import { createScreen } from '../output/screen.ts'
import { wholeNumber } from './arguments.ts'

interface ExploreFlags {
  readonly port?: number
  readonly tokenizer?: readonly string[]
}

/** Shows recorded runs in a browser, until the first interrupt. */
export function exploreCommand(
  program: Command,
  terminal: Terminal,
  done: (code: number) => void,
): void {
  program
    .command('explore')
    .description('look at recorded runs in a browser')
    .argument('[place]', PLACE_HELP, DEFAULT_RUNS)
    .option('--port <n>', 'default: any that is free', wholeNumber)
    .option(
      '--tokenizer <tokenizer.json...>',
      'vocabularies to spell tokens with; the one that fits is found (the demo’s is there)',
    )
    .action(async (place: string, { port, tokenizer = [] }: ExploreFlags) => {
      const tokenizers = await Promise.all([
        ...tokenizer.map((file) => loadTokenizer(pathToFileURL(file), { name: file })),
        loadTokenizer(deskTokenizerFile, { name: 'the demo’s tokenizer' }),
      ])
      const screen = createScreen({ stream: terminal.stdout, env: terminal.env })
      const index = await openIndex(place, terminal.env)
      try {
        const explorer = await serveExplorer({
          index,
          tokenizers,
          logger: screenLogger(screen),
          ...(port === undefined ? {} : { port }),
        })
        screen.line(`${index.name}: look at it at ${explorer.url}/`)
        screen.line('Ctrl-C ends it')
        await untilInterrupted(terminal.interrupts)
        await explorer.close()
      } finally {
        await index.close()
      }
      done(exitCodes.success)
    })
}
