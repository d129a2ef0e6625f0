import { isScored, type EpisodeRecord, type JsonValue, type RecordedMessage } from '@tiltyard/core'

import { messagesOf } from './episode.ts'

type Entry = string | { readonly name: string; readonly arguments: JsonValue }[]

/**
 * The play as a call of `expectScore` from `@tiltyard/bundle`: what the policy said, reply by reply, and the scores that it got.
 * `notes` say what of the play a transcript has no words for.
 */
export function testCaseOf(record: EpisodeRecord): {
  readonly code: string
  readonly notes: string[]
} {
  const { summary, score, episode } = record
  const notes: string[] = []
  const replies = messagesOf(record).filter((message) => message.role === 'assistant')
  const entries = replies.flatMap((message, index) => entriesOf(message, index, notes))
  if (episode === undefined)
    notes.push('the episode never ended; these are the replies of its journal')
  else if (episode.end.kind === 'cut')
    notes.push(
      `a limit cut it (${episode.end.by}): pass the same limits, or end the transcript where it did`,
    )
  else if (episode.end.kind !== 'completed') notes.push(`the episode was ${episode.end.kind}`)
  if (score === undefined) notes.push('it has no scores')
  const expected = Object.entries(score?.scores ?? summary.scores).map(
    ([step, given]) => `  ${literal(step)}: ${isScored(given) ? given.value : "'unscored'"},`,
  )
  const code = [
    ...notes.map((note) => `// ${note.replaceAll(/\s+/g, ' ')}`),
    `await expectScore(bundle, ${literal(summary.task)}, [`,
    ...entries.map((entry) => `  ${entryText(entry)},`),
    expected.length === 0 ? '], {})' : '], {',
    ...(expected.length === 0 ? [] : [...expected, '})']),
    '',
  ].join('\n')
  return { code, notes }
}

function entriesOf(
  message: Extract<RecordedMessage, { role: 'assistant' }>,
  index: number,
  notes: string[],
): readonly Entry[] {
  const { content, toolCalls = [] } = message
  const calls = toolCalls.flatMap((call) => ('arguments' in call ? [call] : []))
  if (calls.length < toolCalls.length)
    notes.push(`reply ${index}: left out a call whose arguments are no object`)
  if (calls.length === 0) return [content]
  if (content.trim() !== '') notes.push(`reply ${index}: left out the text beside its calls`)
  return [calls.map((call) => ({ name: call.name, arguments: call.arguments }))]
}

function entryText(entry: Entry): string {
  if (typeof entry === 'string') return literal(entry)
  const calls = entry.map(
    ({ name, arguments: given }) => `{ name: ${literal(name)}, arguments: ${literal(given)} }`,
  )
  return calls.length === 1 ? calls[0]! : `[${calls.join(', ')}]`
}

/** JSON that is also a JavaScript expression wherever it stands: `__proto__` stays a key. */
function literal(value: JsonValue): string {
  return JSON.stringify(value).replaceAll('"__proto__":', '["__proto__"]:')
}
