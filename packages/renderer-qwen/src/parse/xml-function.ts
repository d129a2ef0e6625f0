import {
  CALL_CLOSE,
  CALL_OPEN,
  callTags,
  FUNCTION_CLOSE,
  FUNCTION_OPEN,
  PARAMETER_CLOSE,
  PARAMETER_OPEN,
  skipSpace,
  tagAt,
} from './tags.ts'

/** A function in XML, read as far as its structure goes: values are text. */
export type FunctionRead =
  | {
      readonly kind: 'function'
      readonly name: string
      readonly parameters: readonly (readonly [name: string, value: string])[]
      /** What stands between the function's tags. */
      readonly body: string
      /** The place after the function, its closing tag included. */
      readonly end: number
    }
  | {
      readonly kind: 'error'
      readonly error: 'invalid_function_name' | 'stray_text' | 'truncated'
      readonly name?: string
      /** Where the body begins, when the name was read. */
      readonly body?: number
    }
  /** What is there doesn't decide it yet. */
  | { readonly kind: 'more' }

export interface FunctionContext {
  /** No text follows. */
  readonly final: boolean
  /** The text was cut by a limit: what isn't closed isn't complete. */
  readonly cut: boolean
  /** Names of the parameters that a function declares. */
  readonly declared: (name: string) => readonly string[]
}

const more = { kind: 'more' } as const

/** Reads the function whose opening tag begins at `start`. What it answers holds whatever text follows. */
export function readFunction(text: string, start: number, context: FunctionContext): FunctionRead {
  const { final, cut } = context
  const nameEnd = text.indexOf('>', start)
  if (nameEnd === -1) return final ? { kind: 'error', error: 'truncated' } : more
  const name = text.slice(start + FUNCTION_OPEN.length, nameEnd).trim()
  if (!/^[^\s"'`{}<>]+$/.test(name)) return { kind: 'error', error: 'invalid_function_name' }

  const bodyStart = nameEnd + 1
  const parameters: (readonly [string, string])[] = []
  const read = (bodyEnd: number, end: number): FunctionRead => {
    return { kind: 'function', name, parameters, body: text.slice(bodyStart, bodyEnd), end }
  }
  const failed = (error: 'stray_text' | 'truncated'): FunctionRead => {
    return { kind: 'error', error, name, body: bodyStart }
  }

  let at = bodyStart
  for (;;) {
    at = skipSpace(text, at)
    if (at === text.length) {
      if (!final) return more
      return cut ? failed('truncated') : read(at, at)
    }
    const tag = tagAt(text, at, callTags, final)
    if (tag === 'more') return more
    if (tag === undefined) return failed(cut && isTagStart(text, at) ? 'truncated' : 'stray_text')
    if (tag === FUNCTION_CLOSE) return read(at, at + FUNCTION_CLOSE.length)
    if (tag === CALL_CLOSE || tag === CALL_OPEN || tag === FUNCTION_OPEN) return read(at, at)
    if (tag === PARAMETER_CLOSE) {
      at += PARAMETER_CLOSE.length
      continue
    }
    const keyEnd = text.indexOf('>', at)
    if (keyEnd === -1) return final ? failed('truncated') : more
    const key = text.slice(at + PARAMETER_OPEN.length, keyEnd).trim()
    const seen = new Set([...parameters.map(([known]) => known), key])
    const unseen = context.declared(name).filter((parameter) => !seen.has(parameter))
    const end = valueEnd(text, keyEnd + 1, unseen, final)
    if (end === 'more') return more
    if (end === undefined) return failed('truncated')
    parameters.push([key, unframed(text.slice(keyEnd + 1, end.value))])
    at = end.next
  }
}

interface ValueEnd {
  readonly value: number
  /** Where reading goes on. */
  readonly next: number
}

/**
 * A value ends at the first closing tag that structure follows, except one that closes a parameter which itself starts a line
 * inside the value. Only when there is none, at what must be the next structure.
 */
function valueEnd(
  text: string,
  from: number,
  unseen: readonly string[],
  final: boolean,
): ValueEnd | 'more' | undefined {
  const marks = /<\/parameter>|\n<parameter=/g
  marks.lastIndex = from
  let inner = 0
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    if (mark[0] !== PARAMETER_CLOSE) {
      inner += 1
    } else if (inner > 0) {
      inner -= 1
    } else {
      const next = mark.index + PARAMETER_CLOSE.length
      const after = skipSpace(text, next)
      if (after === text.length) return final ? { value: mark.index, next } : 'more'
      const tag = tagAt(text, after, callTags, final)
      if (tag === 'more') return 'more'
      if (tag !== undefined) return { value: mark.index, next }
    }
  }
  return final ? impliedEnd(text, from, unseen) : 'more'
}

/** The end of a value whose closing tag is missing; undefined when nothing implies one. */
function impliedEnd(text: string, from: number, unseen: readonly string[]): ValueEnd | undefined {
  const marks = /(?<=\n)<parameter=([^>\n]*)>|<\/function>|<\/tool_call>/g
  marks.lastIndex = from
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const end = { value: mark.index, next: mark.index }
    const after = skipSpace(text, mark.index + mark[0].length)
    if (mark[1] !== undefined) {
      if (unseen.includes(mark[1].trim())) return end
    } else if (after === text.length) {
      return end
    } else if (mark[0] === FUNCTION_CLOSE) {
      if (tagAt(text, after, callTags, true) !== undefined) return end
    } else if (text.startsWith(CALL_OPEN, after)) {
      return end
    }
  }
  return undefined
}

/** One newline on each side frames the value; everything else is the value's own. */
function unframed(value: string): string {
  const start = value.startsWith('\n') ? 1 : 0
  const end = value.length > start && value.endsWith('\n') ? value.length - 1 : value.length
  return value.slice(start, end)
}

function isTagStart(text: string, at: number): boolean {
  const rest = text.slice(at)
  return callTags.some((tag) => tag.startsWith(rest))
}
