import { isRecord, type TokenizerDefinition } from '../definition.ts'

/**
 * The definition without its markers: no added tokens, and vocabulary entries that spell one renamed to what no text contains.
 * The library finds markers anywhere in a text and has no switch for it. The unknown token stays: text that the vocabulary
 * can't write becomes it, by the nature of such vocabularies.
 */
export function withoutMarkers(definition: TokenizerDefinition): Record<string, unknown> {
  const { model, whole } = definition
  const markers = new Set(definition.added.map(({ content }) => content))
  if (typeof model['unk_token'] === 'string') markers.delete(model['unk_token'])
  const hidden = (token: string) => (markers.has(token) ? `\u{10FFFE}${token}\u{10FFFE}` : token)

  const vocab = model['vocab']
  let rewritten: unknown = vocab
  if (Array.isArray(vocab)) {
    const unknown = model['unk_id']
    rewritten = vocab.map((entry: readonly [string, number], id) =>
      id === unknown ? entry : [hidden(entry[0]), entry[1]],
    )
  } else if (isRecord(vocab)) {
    rewritten = Object.fromEntries(Object.entries(vocab).map(([token, id]) => [hidden(token), id]))
  }
  return { ...whole, added_tokens: [], model: { ...model, vocab: rewritten } }
}
