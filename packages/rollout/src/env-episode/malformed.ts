import type { ParsedReply, UserMessage } from '@tiltyard/core'

import type { MalformedPolicy } from '../options.ts'

/** The answer to a malformed reply unless the policy brings its own; `{details}` is replaced. */
export const MALFORMED_MESSAGE =
  'Your last reply could not be read: {details}. None of it was carried out. Reply again, with well-formed tool calls or none.'

/** Most characters of `{details}`. */
export const MAX_DETAILS_CHARS = 2_000

/**
 * What is wrong with the structure of a reply that its sampler ended with a stop; undefined when it can be acted on. A reply
 * that holds readable calls beside broken ones can.
 */
export function structuralFault(parsed: ParsedReply): string | undefined {
  if (parsed.termination === 'length') return 'it does not end as a reply must'
  if (parsed.malformed.length === 0 || (parsed.message.toolCalls?.length ?? 0) > 0) return undefined
  const details = parsed.malformed.map(({ error, raw }) => `${error} in "${raw}"`).join('; ')
  return details.length > MAX_DETAILS_CHARS ? `${details.slice(0, MAX_DETAILS_CHARS)}…` : details
}

/** What the model is told about its malformed reply, the nth in a row; undefined when the policy ends the episode. */
export function correction(
  policy: MalformedPolicy,
  fault: string,
  inARow: number,
): UserMessage | undefined {
  const { onMalformed = 'end' } = policy
  if (onMalformed === 'end' || inARow > onMalformed.tell) return undefined
  const template = onMalformed.message ?? MALFORMED_MESSAGE
  return { role: 'user', content: template.replaceAll('{details}', () => fault) }
}
