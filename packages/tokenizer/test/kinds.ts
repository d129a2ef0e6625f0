/** The smallest tokenizers of the kinds that the library takes. */

const marker = (id: number, content: string) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
})

export const wordPiece = {
  version: '1.0',
  added_tokens: [marker(0, '[UNK]'), marker(1, '[CLS]'), marker(2, '[SEP]')],
  normalizer: {
    type: 'BertNormalizer',
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: null,
  decoder: { type: 'WordPiece', prefix: '##', cleanup: false },
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(
      '[UNK] [CLS] [SEP] the order is pack ##ed ##s un , . ! ? [ ] cl ##s'
        .split(' ')
        .filter((token, index, all) => all.indexOf(token) === index)
        .map((token, id) => [token, id]),
    ),
  },
}

const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true }

export const unigram = {
  version: '1.0',
  added_tokens: [marker(0, '<unk>'), marker(1, '<s>'), marker(2, '</s>')],
  normalizer: null,
  pre_tokenizer: metaspace,
  post_processor: null,
  decoder: metaspace,
  model: {
    type: 'Unigram',
    unk_id: 0,
    byte_fallback: false,
    vocab: [
      ['<unk>', 0],
      // A marker's score would beat its letters, were it not hidden.
      ['<s>', 0],
      ['</s>', 0],
      ...'▁ ▁the ▁order ▁is ▁pack ed s < > / t h e o r d i p a c k'
        .split(' ')
        .map((piece, index): [string, number] => [piece, -3 - index / 10]),
    ] as readonly (readonly [string, number])[],
  },
}

const bytePieces = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
)
const letters = '▁ < > / s t h e o r d i p a c k'.split(' ')
const pairs = [
  ['t', 'h'],
  ['th', 'e'],
  ['▁', 'the'],
  ['i', 's'],
  ['▁', 'is'],
  ['e', 'd'],
] as const

export const sentencePieceBpe = {
  version: '1.0',
  added_tokens: [marker(0, '<unk>'), marker(1, '<s>'), marker(2, '</s>')],
  normalizer: {
    type: 'Sequence',
    normalizers: [
      { type: 'Prepend', prepend: '▁' },
      { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
    ],
  },
  pre_tokenizer: null,
  post_processor: null,
  decoder: {
    type: 'Sequence',
    decoders: [
      { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
      { type: 'ByteFallback' },
      { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 },
    ],
  },
  model: {
    type: 'BPE',
    dropout: null,
    unk_token: '<unk>',
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: true,
    byte_fallback: true,
    vocab: Object.fromEntries(
      [
        '<unk>',
        '<s>',
        '</s>',
        ...bytePieces,
        ...letters,
        ...pairs.map((pair) => pair.join('')),
      ].map((token, id) => [token, id]),
    ),
    merges: pairs.map((pair) => pair.join(' ')),
  },
}
