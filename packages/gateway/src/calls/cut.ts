import type { ParsedReply, Renderer, Sample, ToolSpec } from '@tiltyard/core'

/** What may end a reply before its stop token. */
export interface CutOptions {
  readonly stop: readonly string[]
  readonly parallelCalls: boolean
}

/**
 * The shortest part of a sample that holds a stop text or, when one call is allowed, the first call; the sample itself when
 * neither comes. Ids and log-probabilities are cut alike: a start of what was sampled is still exactly what was sampled.
 */
export function cutSample(
  renderer: Renderer,
  tools: readonly ToolSpec[],
  sample: Sample,
  options: CutOptions,
): Sample {
  let kept = sample
  if (options.stop.length > 0) {
    const holdsStop = ({ spans }: ParsedReply) => firstStop(decoded(spans), options.stop) !== -1
    kept = shortest(renderer, tools, kept, holdsStop)
  }
  if (!options.parallelCalls) {
    const whole = renderer.parse(kept.ids, { tools, stop: kept.stop })
    if (countCalls(whole) > 1)
      kept = shortest(renderer, tools, kept, (reply) => countCalls(reply) > 0)
  }
  return kept
}

function shortest(
  renderer: Renderer,
  tools: readonly ToolSpec[],
  sample: Sample,
  holds: (reply: ParsedReply) => boolean,
): Sample {
  const reaches = (length: number) =>
    holds(renderer.parse(sample.ids.subarray(0, length), { tools, stop: 'length' }))
  if (!reaches(sample.ids.length)) return sample
  let low = 0
  let high = sample.ids.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (reaches(middle)) high = middle
    else low = middle + 1
  }
  if (low === sample.ids.length) return sample
  return { ids: sample.ids.slice(0, low), logprobs: sample.logprobs.slice(0, low), stop: 'stop' }
}

/** How many ids it takes to write all of the reasoning. */
export function reasoningTokens(
  renderer: Renderer,
  ids: Int32Array,
  { message }: ParsedReply,
): number {
  if (message.reasoning === undefined) return 0
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >> 1
    const start = renderer.parse(ids.subarray(0, middle), { tools: [], stop: 'length' })
    if ((start.message.reasoning ?? '').length >= message.reasoning.length) high = middle
    else low = middle + 1
  }
  return low
}

/** The reply's text, markup and all. */
export function decoded(spans: ParsedReply['spans']): string {
  return spans.map(({ text }) => text).join('')
}

/** Where the first of the stop texts begins, or −1. */
export function firstStop(text: string, stops: readonly string[]): number {
  const found = stops.map((stop) => text.indexOf(stop)).filter((at) => at !== -1)
  return found.length === 0 ? -1 : Math.min(...found)
}

/** Lets text through up to where a stop text may have begun. */
export function createStopFilter(stops: readonly string[]): (text: string) => string {
  const longest = Math.max(0, ...stops.map(({ length }) => length))
  if (longest === 0) return (text) => text
  let seen = ''
  let sent = 0
  return (text) => {
    seen += text
    const at = firstStop(seen, stops)
    let safe = Math.max(sent, at === -1 ? seen.length - longest + 1 : at)
    if (isHighSurrogate(seen.charCodeAt(safe - 1))) safe -= 1
    const piece = seen.slice(sent, safe)
    sent = safe
    return piece
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function countCalls({ message }: ParsedReply): number {
  return (message.toolCalls ?? []).length
}
