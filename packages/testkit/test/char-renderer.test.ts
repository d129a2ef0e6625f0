import type { Tokenizer } from '@tiltyard/core'
import { test } from 'vitest'

import {
  CHAR_VOCABULARY,
  charIds,
  charMarkers,
  charRenderer,
  charText,
  registerCases,
  rendererCases,
} from '../src/index.ts'

const tokenizer: Tokenizer = {
  specVersion: 'tokenizer/1',
  name: 'characters',
  fingerprint: 'characters',
  vocabularySize: CHAR_VOCABULARY,
  markers: new Map(Object.values(charMarkers).map((id) => [charText([id]), id])),
  encode: charIds,
  decode: (ids) => charText(Array.from(ids)),
  bytes: (id) => new TextEncoder().encode(charText([id])),
  stream: () => ({ push: (ids) => charText(Array.from(ids)), end: () => '' }),
}

registerCases(
  test,
  rendererCases({
    // Characters are the vocabulary: another tokenizer makes another renderer in name only.
    create: ({ fingerprint }) => ({ ...charRenderer(), fingerprint: `char over ${fingerprint}` }),
    tokenizer,
  }),
)
