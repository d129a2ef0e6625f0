import { createInterface } from 'node:readline/promises'

import { authorFailure, type Player, playTask } from '@tiltyard/bundle'
import {
  type AssistantMessage,
  type Conversation,
  isRewarded,
  isScored,
  type JsonObject,
  textOf,
  TiltyardError,
  type ToolCall,
  type ToolSpec,
} from '@tiltyard/core'
import type { Command } from 'commander'

import { exitCodes, type Terminal } from '../exit.ts'
import { createScreen, paint } from '../output/screen.ts'
import { type LoadFlags, openBundle, withLoadFlags } from './bundle.ts'
import { promptTokens, type PromptTokensOptions } from './prompt-tokens.ts'

interface PlayFlags extends LoadFlags, PromptTokensOptions {
  readonly task: string
  readonly seed: number
}

export interface PlayInput {
  readonly stdin: NodeJS.ReadableStream
}

export function playCommand(
  program: Command,
  terminal: Terminal & PlayInput,
  done: (code: number) => void,
): void {
  withLoadFlags(program.command('play'))
    .description('be the model: play a task of a bundle in the terminal')
    .argument('<bundle>', 'folder of the bundle')
    .requiredOption('--task <id>')
    .option('--seed <n>', "of the task's instance", Number, 0)
    .option(
      '--tokenizer <file>',
      "a model's tokenizer.json, for :tokens (default: the small policy's)",
    )
    .option('--layout <name>', 'layout of the prompt, for :tokens', 'qwen3_5')
    .action(async (folder: string, flags: PlayFlags) => {
      done(await play(folder, flags, terminal))
    })
}

async function play(
  folder: string,
  flags: PlayFlags,
  terminal: Terminal & PlayInput,
): Promise<number> {
  const { task, seed } = flags
  const bundle = await openBundle(folder, flags, terminal)
  const screen = createScreen({ stream: terminal.stdout, env: terminal.env })
  const { bold, dim } = paint(screen)
  const person = createPerson(terminal, screen, promptTokens(flags))
  const tellAuthor = (what: string, error: unknown) => {
    const { error: text, at, stack } = authorFailure(bundle, error)
    screen.line(bold(`${what} broke${at === undefined ? '' : ` at ${at}`}: ${text}`))
    screen.line(dim(stack))
  }
  try {
    const { outcome } = await playTask(bundle, task, person.player, {
      seed,
      signal: terminal.interrupts.soft,
      onToolError: (error, { tool }) => tellAuthor(`tool "${tool}"`, error),
    })
    for (const [step, score] of Object.entries(outcome.scores)) {
      screen.line(`${bold(step)}  ${isScored(score) ? score.value : `unscored: ${score.unscored}`}`)
    }
    const reward = bundle.reward?.reward(outcome)
    if (reward !== undefined)
      screen.line(isRewarded(reward) ? `reward ${reward.reward}` : dim(reward.unscored))
    return exitCodes.success
  } catch (error) {
    if (!TiltyardError.is(error, 'VERIFIER')) throw error
    tellAuthor('a verifier', error)
    return exitCodes.failure
  } finally {
    person.close()
  }
}

/**
 * Reads replies from the terminal: a line that begins with a tool's name is a call, `:tokens` shows the prompt, another line ends
 * the turn.
 */
function createPerson(
  terminal: Terminal & PlayInput,
  screen: ReturnType<typeof createScreen>,
  tokensOf: ReturnType<typeof promptTokens>,
) {
  const { bold, dim } = paint(screen)
  const reader = createInterface({
    input: terminal.stdin,
    output: terminal.stdout,
    terminal: screen.live,
  })
  const lines = reader[Symbol.asyncIterator]()
  let shown = 0
  let calls = 0
  const player: Player = async ({ messages, tools = [] }: Conversation) => {
    if (shown === 0) screen.line(dim(`tools: ${tools.map(signature).join('; ')}`))
    for (const message of messages.slice(shown)) {
      if (message.role !== 'assistant')
        screen.line(`${bold(message.role)}: ${textOf(message.content, '[image]')}`)
    }
    shown = messages.length
    if (shown > 0 && calls === 0)
      screen.line(
        dim(
          'reply with a line of text, or call a tool: name {"argument": "value"}; :tokens shows what a model would be given; empty line gives up',
        ),
      )
    for (;;) {
      terminal.stdout.write('> ')
      const { value, done } = await lines.next()
      const line = done === true ? '' : value.trim()
      if (line === '') return undefined
      if (line === ':tokens') {
        for (const shownLine of await tokensOf({ messages, tools })) screen.line(shownLine)
        continue
      }
      const reply = readReply(line, tools, `person_${calls}`)
      if ('mistake' in reply) {
        screen.line(reply.mistake)
        continue
      }
      calls += 1
      return reply
    }
  }
  return { player, close: () => reader.close() }
}

function readReply(
  line: string,
  tools: readonly ToolSpec[],
  id: string,
): AssistantMessage | { readonly mistake: string } {
  const [first = '', ...rest] = line.split(/\s+/)
  const tool = tools.find(({ name }) => name === first)
  if (tool === undefined) return { role: 'assistant', content: line }
  const text = rest.length === 0 ? '{}' : line.slice(first.length).trim()
  const call: ToolCall | undefined = callOf(tool.name, text, id)
  if (call === undefined)
    return { mistake: `after ${tool.name} there should be a JSON object: ${signature(tool)}` }
  return { role: 'assistant', content: '', toolCalls: [call] }
}

function callOf(name: string, text: string, id: string): ToolCall | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return { id, name, arguments: value as JsonObject, rawArguments: text }
  } catch {
    return undefined
  }
}

function signature({ name, parameters }: ToolSpec): string {
  const properties = parameters['properties']
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  return `${name} {${names.map((property) => `"${property}": …`).join(', ')}}`
}
