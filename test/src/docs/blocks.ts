/** A fenced block of a Markdown file. Lines count from 1. */
export interface Block {
  readonly language: string
  /** The words after the language: `run`, `continued`, `file=recipe.ts`. */
  readonly marks: readonly string[]
  /** The HTML comment directly above the block, without its brackets. */
  readonly comment: Span | undefined
  readonly code: Span
}

export interface Span {
  /** Line of the first line of `lines`. */
  readonly start: number
  readonly lines: readonly string[]
}

export function blocksOf(markdown: string): readonly Block[] {
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  let comment: Span | undefined
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const fence = /^(\s*)(`{3,})\s*(\S*)\s*(.*)$/.exec(line)
    if (fence !== null) {
      const [, indent = '', ticks = '', language = '', info = ''] = fence
      const end = indexFrom(lines, at + 1, (text) => text.trim() === ticks)
      const code = lines.slice(at + 1, end).map((text) => text.replace(indent, ''))
      const marks = info.split(/\s+/).filter((mark) => mark !== '')
      blocks.push({ language, marks, comment, code: { start: at + 2, lines: code } })
      comment = undefined
      at = end
    } else if (line.trimStart().startsWith('<!--')) {
      const end = indexFrom(lines, at, (text) => text.includes('-->'))
      const text = lines.slice(at, end + 1).map((part) => part.replace(/^\s*<!--|-->\s*$/g, ''))
      comment = { start: at + 1, lines: text }
      at = end
    } else if (line.trim() !== '') {
      comment = undefined
    }
  }
  return blocks
}

/** A program made of one or more blocks, at the very lines that they have in their document. */
export interface Program {
  readonly name: string
  readonly line: number
  readonly runs: boolean
  readonly source: string
}

/**
 * The `ts` blocks as programs. A comment `<!-- ts … -->` above a block holds lines that a reader needs
 * not see; a block marked `continued` goes on with the program before it.
 */
export function programsOf(blocks: readonly Block[]): readonly Program[] {
  const programs: { marks: string[]; spans: Span[] }[] = []
  for (const { language, marks, comment, code } of blocks) {
    if (language !== 'ts') continue
    const spans = comment === undefined ? [code] : [...hiddenLines(comment), code]
    const last = programs.at(-1)
    if (marks.includes('continued') && last !== undefined) {
      last.spans.push(...spans)
      last.marks.push(...marks)
    } else {
      programs.push({ marks: [...marks], spans })
    }
  }
  return programs.map(({ marks, spans }) => {
    const line = spans[0]?.start ?? 1
    const file = marks.find((mark) => mark.startsWith('file='))?.slice('file='.length)
    const lines: string[] = []
    for (const span of spans) {
      while (lines.length < span.start - 1) lines.push('')
      lines.push(...span.lines)
    }
    return {
      name: file ?? `line-${line}.ts`,
      line,
      runs: marks.includes('run'),
      source: `${lines.join('\n')}\n`,
    }
  })
}

function hiddenLines(comment: Span): readonly Span[] {
  const [first = '', ...rest] = comment.lines
  const opening = /^\s*ts\b(.*)$/.exec(first)
  return opening === null ? [] : [{ start: comment.start, lines: [opening[1] ?? '', ...rest] }]
}

/** The commands of a shell block: prompts, comments and line continuations are resolved. */
export function commandsOf({ lines }: Span): readonly string[] {
  return lines
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) =>
      line
        .replace(/^\$ /, '')
        .replace(/(^|\s)#.*$/, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => line !== '')
}

/** Targets of links and images, code left out. */
export function linksOf(markdown: string): readonly string[] {
  const prose = markdown.replaceAll(/^(\s*`{3,})[\s\S]*?^\1\s*$/gm, '').replaceAll(/`[^`]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)[^)]*\)/g)].map((match) => match[1] ?? '')
}

function indexFrom(
  lines: readonly string[],
  from: number,
  matches: (line: string) => boolean,
): number {
  const found = lines.findIndex((line, index) => index >= from && matches(line))
  return found === -1 ? lines.length : found
}
