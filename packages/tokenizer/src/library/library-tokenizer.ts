import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers'
import { ConfigError, type Tokenizer } from '@tiltyard/core'

import { byteAlphabet, byteReader } from '../bpe/byte-alphabet.ts'
import { isRecord, type TokenizerDefinition } from '../definition.ts'
import { fingerprint } from '../fingerprint.ts'
import { withoutMarkers } from './hide-markers.ts'
import { libraryStream } from './library-stream.ts'

/**
 * Every kind of tokenizer but byte-level BPE (SentencePiece BPE and Unigram, WordPiece), by `@huggingface/tokenizers`.
 * @throws ConfigError when the library doesn't know the kind either. `why` says what our own engine lacks.
 */
export function libraryTokenizer(
  definition: TokenizerDefinition,
  name: string,
  why: string,
): Tokenizer {
  const { encoder, decoder } = open(definition, name, why)
  const markers = new Map(definition.added.map(({ id, content }) => [content, id]))
  const size = 1 + Math.max(-1, ...decoder.get_vocab(true).values(), ...markers.values())

  const isKnown = (id: number) => decoder.id_to_token(id) !== undefined
  const decode = (ids: ArrayLike<number>) => {
    const known = Array.from(ids).filter(isKnown)
    if (known.length === 0) return ''
    return decoder.decode(known, {
      skip_special_tokens: false,
      clean_up_tokenization_spaces: false,
    })
  }

  return {
    specVersion: 'tokenizer/1',
    name,
    fingerprint: fingerprint([JSON.stringify(sorted(definition.whole))]),
    vocabularySize: size,
    markers,
    encode: (text) =>
      Int32Array.from(
        text === '' ? [] : encoder.encode(wellFormed(text), { add_special_tokens: false }).ids,
      ),
    decode,
    bytes: tokenBytes(decoder, definition),
    stream: () => libraryStream(decode, isKnown),
  }
}

/** Models that the library has; it takes any other for one of these. */
const models: ReadonlySet<unknown> = new Set(['BPE', 'Unigram', 'WordPiece'])

function open(definition: TokenizerDefinition, name: string, why: string) {
  try {
    if (!models.has(definition.model['type'])) throw new Error('no such model')
    return {
      encoder: new LibraryTokenizer(withoutMarkers(definition), {}),
      decoder: new LibraryTokenizer(definition.whole, {}),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigError(
      `tokenizer ${name}`,
      [
        {
          at: '',
          message: `is no plain byte-level BPE (${why}), and @huggingface/tokenizers doesn't know the kind: ${reason}`,
        },
      ],
      { cause: error },
    )
  }
}

/** Half a surrogate pair is no character. */
function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}

/** Bytes of single tokens: byte tokens, byte-level spellings, SentencePiece's and WordPiece's marks for spaces and joints. */
function tokenBytes(
  decoder: LibraryTokenizer,
  { added, decoder: declared, model }: TokenizerDefinition,
): (id: number) => Uint8Array {
  const encoder = new TextEncoder()
  const read = byteReader(byteAlphabet())
  const markers = new Set(added.map(({ id }) => id))
  const kind = isRecord(declared) ? declared['type'] : undefined
  const prefix = model['continuing_subword_prefix']
  const joint = typeof prefix === 'string' ? prefix : '##'
  return (id) => {
    const token = decoder.id_to_token(id)
    if (token === undefined) return new Uint8Array(0)
    if (markers.has(id)) return encoder.encode(token)
    const byte = /^<0x([\dA-F]{2})>$/.exec(token)?.[1]
    if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16))
    if (kind === 'ByteLevel') return read(token) ?? encoder.encode(token)
    if (kind !== 'WordPiece') return encoder.encode(token.replaceAll('▁', ' '))
    return encoder.encode(token.startsWith(joint) ? token.slice(joint.length) : ` ${token}`)
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  )
}
