import { ConfigError } from '@tiltyard/core'

/** A token beside the vocabulary: a marker. */
interface AddedToken {
  readonly id: number
  readonly content: string
}

/** A `tokenizer.json` as far as it is looked at before an engine is chosen. Parts of a kind that only a library reads stay `unknown`. */
export interface TokenizerDefinition {
  readonly added: readonly AddedToken[]
  readonly normalizer: unknown
  readonly preTokenizer: unknown
  readonly decoder: unknown
  readonly model: Readonly<Record<string, unknown>>
  /** The parsed JSON. */
  readonly whole: Readonly<Record<string, unknown>>
}

/**
 * Checks the outline of a parsed `tokenizer.json`.
 * @throws ConfigError that names the file and what is missing in it.
 */
export function readDefinition(json: unknown, file: string): TokenizerDefinition {
  const fail = (at: string, message: string): never => {
    throw new ConfigError(`tokenizer ${file}`, [{ at, message }])
  }
  if (!isRecord(json)) return fail('', 'expected a JSON object, as in a tokenizer.json')
  const { model } = json
  if (!isRecord(model)) return fail('model', 'missing; is this a tokenizer.json?')
  const list = json['added_tokens'] ?? []
  if (!Array.isArray(list)) return fail('added_tokens', 'expected a list')
  const added = list.map((token: unknown, index) => {
    const good = isRecord(token) && isId(token['id']) && typeof token['content'] === 'string'
    if (!good) return fail(`added_tokens.${index}`, 'expected an object with id and content')
    return { id: token['id'] as number, content: token['content'] as string }
  })
  return {
    added,
    normalizer: json['normalizer'] ?? undefined,
    preTokenizer: json['pre_tokenizer'] ?? undefined,
    decoder: json['decoder'] ?? undefined,
    model,
    whole: json,
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isId(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0
}
