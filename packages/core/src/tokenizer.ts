import type { Contract } from './contract.ts'

/**
 * Text ⇄ ids for one vocabulary. `encode` treats its text as text: no input ever becomes a marker.
 * Markers (added tokens, `<|im_start|>` and the like) come by name, from a renderer.
 */
export interface Tokenizer extends Contract<'tokenizer/1'> {
  readonly name: string
  /** Hash of vocabulary, merges, added tokens and normalization. Part of a run's identity. */
  readonly fingerprint: string
  /** Ids lie in `[0, vocabularySize)`. */
  readonly vocabularySize: number
  /** Added tokens by their text. */
  readonly markers: ReadonlyMap<string, number>
  /** Ids of ordinary text. Text that spells a marker is encoded as ordinary characters. */
  encode(text: string): Int32Array
  /** Text of ids, markers spelled out. Bytes that are no UTF-8 become U+FFFD; unknown ids become nothing. */
  decode(ids: ArrayLike<number>): string
  /** The bytes that an id stands for; empty for an unknown id. A marker gives the bytes of its text. */
  bytes(id: number): Uint8Array
  /** A decoder for a stream: holds back the bytes of an unfinished character. */
  stream(): TokenStream
}

export interface TokenStream {
  /** The text that these ids complete. */
  push(ids: ArrayLike<number>): string
  /** What is left; an unfinished character becomes U+FFFD. */
  end(): string
}
