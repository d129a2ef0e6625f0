import type { EpisodeRecord, RecordedMessage } from '@tiltyard/core'
import { endName, isRewarded, isScored } from '@tiltyard/core'

/** Longest tool result shown, in characters; the record has it whole. */
const MAX_SHOWN_CHARS = 400

/** An episode as a person reads it: what was asked, called, answered and told, then the scores. */
export function transcript(record: EpisodeRecord): readonly string[] {
  const lines = (record.episode?.messages ?? [])
    .filter(({ role }) => role !== 'system')
    .flatMap(messageLines)
  const { end, scores, reward } = record.summary
  const told = Object.entries(scores).map(
    ([step, score]) => `${step} ${isScored(score) ? score.value : 'unscored'}`,
  )
  const ended = end === undefined ? 'interrupted' : endName(end)
  const paid = reward !== undefined && isRewarded(reward) ? `reward ${reward.reward}` : 'no reward'
  return [...lines, `(${[ended, ...told, paid].join(', ')})`]
}

function messageLines(message: RecordedMessage): readonly string[] {
  if (message.role !== 'assistant') return [`${message.role}: ${shorten(text(message.content))}`]
  const calls = (message.toolCalls ?? []).map((call) => {
    const shown = 'arguments' in call ? JSON.stringify(call.arguments) : call.rawArguments
    return `  calls ${call.name}(${shorten(shown)})`
  })
  const said = message.content === '' ? [] : [`policy: ${shorten(message.content)}`]
  return said.length === 0 && calls.length > 0 ? ['policy:', ...calls] : [...said, ...calls]
}

function text(content: Exclude<RecordedMessage, { role: 'assistant' }>['content']): string {
  if (typeof content === 'string') return content
  return content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('')
}

/** Control characters would act on the terminal; what a model or tool wrote must not. */
function shorten(value: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  const plain = value.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
  return plain.length > MAX_SHOWN_CHARS ? `${plain.slice(0, MAX_SHOWN_CHARS)}…` : plain
}
