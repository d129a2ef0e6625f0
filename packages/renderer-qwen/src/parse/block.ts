import type { RunnableCall, InvalidCall, ToolSpec } from '@tiltyard/core'

import { readJsonCall } from './json-call.ts'
import {
  CALL_CLOSE,
  CALL_OPEN,
  earliest,
  FUNCTION_CLOSE,
  FUNCTION_OPEN,
  skipSpace,
  tagAt,
} from './tags.ts'
import { typedValue } from './typed-value.ts'
import { readFunction } from './xml-function.ts'

/** A call before it has an id. */
type UnnamedCall = Omit<RunnableCall, 'id'> | Omit<InvalidCall, 'id'>

/** What begins at a tag that may open a call. `end` is the place after it. */
export type Block =
  | { readonly kind: 'prose' }
  /** What is there doesn't decide it yet; `inside`: but it is a block, whose end is missing. */
  | { readonly kind: 'more'; readonly inside: boolean }
  | {
      readonly kind: 'call'
      readonly call: UnnamedCall
      readonly end: number
      /** Whether the block is still open: more functions may follow in it. */
      readonly open: boolean
    }
  | { readonly kind: 'malformed'; readonly error: string; readonly end: number }

export interface BlockContext {
  readonly calls: 'json' | 'xml'
  readonly tools: readonly ToolSpec[]
  /** No text follows. */
  readonly final: boolean
  /** The text was cut by a limit. */
  readonly cut: boolean
}

const prose = { kind: 'prose' } as const
const undecided = { kind: 'more', inside: false } as const
const unfinished = { kind: 'more', inside: true } as const

/** Reads what begins with `<tool_call>` at a place. */
export function readBlock(text: string, start: number, context: BlockContext): Block {
  const { calls, final, cut } = context
  const at = skipSpace(text, start + CALL_OPEN.length)
  const openings = calls === 'xml' ? ['{', FUNCTION_OPEN, CALL_CLOSE] : ['{', CALL_CLOSE]
  const tag = at === text.length && !final ? 'more' : tagAt(text, at, openings, final)
  if (tag === 'more') return undecided
  if (tag === CALL_CLOSE) return { kind: 'malformed', error: 'empty', end: at + CALL_CLOSE.length }
  if (tag === '{') return readJsonBlock(text, at, context)
  if (tag === FUNCTION_OPEN) return readFunctionBlock(text, at, context, [CALL_CLOSE], true)
  const rest = text.slice(at)
  const begun = final && cut && openings.some((opening) => opening.startsWith(rest))
  return begun ? { kind: 'malformed', error: 'truncated', end: text.length } : prose
}

/** Reads a function whose `<tool_call>` is missing: it counts when its tool is declared. */
export function readBareFunction(text: string, start: number, context: BlockContext): Block {
  const names = context.tools.map(({ name }) => name)
  const nameEnd = text.indexOf('>', start)
  const name = text.slice(start + FUNCTION_OPEN.length, nameEnd === -1 ? undefined : nameEnd).trim()
  if (nameEnd === -1) {
    const possible = !context.final && names.some((known) => known.startsWith(name))
    return possible ? undecided : prose
  }
  if (!names.includes(name)) return prose
  return readFunctionBlock(text, start, context, [FUNCTION_CLOSE, CALL_CLOSE], false)
}

/** A function that begins at `start`; after an error what follows is skipped up to one of `ends`. */
export function readFunctionBlock(
  text: string,
  start: number,
  context: BlockContext,
  ends: readonly string[],
  open: boolean,
): Exclude<Block, typeof prose> {
  const { tools, final, cut } = context
  const toolOf = (name: string) => tools.find((tool) => tool.name === name)
  const read = readFunction(text, start, {
    final,
    cut,
    declared: (name) => Object.keys(toolOf(name)?.parameters['properties'] ?? {}),
  })
  if (read.kind === 'more') return unfinished
  if (read.kind === 'function') {
    const tool = toolOf(read.name)
    const args = read.parameters.map(([key, value]) => [key, typedValue(value, tool, key)] as const)
    const call = {
      name: read.name,
      arguments: Object.fromEntries(args),
      rawArguments: read.body,
    }
    return { kind: 'call', call, end: read.end, open }
  }
  if (read.error === 'truncated') {
    return { kind: 'malformed', error: 'truncated', end: text.length }
  }
  const stop = earliest(text, start, [...ends, CALL_OPEN])
  if (stop === -1 && !final) return unfinished
  const closing = ends.find((tag) => stop !== -1 && text.startsWith(tag, stop))
  const end = stop === -1 ? text.length : stop + (closing?.length ?? 0)
  if (read.name === undefined || read.body === undefined) {
    return { kind: 'malformed', error: read.error, end }
  }
  const bodyEnd = text.indexOf(FUNCTION_CLOSE, read.body)
  const call = {
    name: read.name,
    rawArguments: text.slice(read.body, bodyEnd === -1 || bodyEnd > end ? end : bodyEnd),
    error: `${read.error}: write each argument as <parameter=name>, a line with the value, </parameter>`,
  }
  return { kind: 'call', call, end, open: false }
}

function readJsonBlock(text: string, at: number, { final, cut }: BlockContext): Block {
  const stop = earliest(text, at, [CALL_CLOSE, CALL_OPEN])
  if (stop === -1) {
    if (!final) return unfinished
    if (cut) return { kind: 'malformed', error: 'truncated', end: text.length }
  }
  const bodyEnd = stop === -1 ? text.length : stop
  const closed = stop !== -1 && text.startsWith(CALL_CLOSE, stop)
  const end = closed ? stop + CALL_CLOSE.length : bodyEnd
  const read = readJsonCall(text.slice(at, bodyEnd))
  return read.kind === 'call' ? { ...read, end, open: false } : { ...read, end }
}
