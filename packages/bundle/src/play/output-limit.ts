import type { BundleLimits } from '../bundle.ts'

/**
 * A tool's result as the model is shown it: at most `toolOutputChars` characters (UTF-16 units) of the text, with a marker
 * where characters were left out that counts them. Keeps the head, the tail, or a half of each; no character is split.
 */
export function limitOutput(
  text: string,
  { toolOutputChars, toolOutputKeep }: Pick<BundleLimits, 'toolOutputChars' | 'toolOutputKeep'>,
): string {
  if (text.length <= toolOutputChars) return text
  const headChars =
    toolOutputKeep === 'head'
      ? toolOutputChars
      : toolOutputKeep === 'tail'
        ? 0
        : Math.ceil(toolOutputChars / 2)
  const headEnd = wholeCharacters(text, headChars, -1)
  const tailStart = wholeCharacters(text, text.length - (toolOutputChars - headChars), 1)
  const marker = `[… ${tailStart - headEnd} characters left out …]`
  const head = headEnd === 0 ? '' : `${text.slice(0, headEnd)}\n`
  const tail = tailStart === text.length ? '' : `\n${text.slice(tailStart)}`
  return `${head}${marker}${tail}`
}

/** The position, moved off the middle of a surrogate pair. */
function wholeCharacters(text: string, at: number, direction: 1 | -1): number {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff ? at + direction : at
}
