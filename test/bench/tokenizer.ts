/**
 * Encoding, decoding and loading, beside the native tokenizers and Hugging Face's JavaScript ones: the same texts, the same run,
 * one core. Prints the tables of packages/tokenizer/README.md.
 *
 *   RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false node --import tsx test/bench/tokenizer.ts [qwen3|llama3_1|…]
 */
import { readFileSync } from 'node:fs'

import { Tokenizer as NativeTokenizer } from '@anush008/tokenizers'
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers'
import { loadTokenizer } from '@tiltyard/tokenizer'

import { realTexts } from '../src/tokenizer/texts.ts'
import { families, vocabulary, type Family } from '../support/vocabularies.ts'

const family = (process.argv[2] ?? 'qwen3') as Family
const file = families.includes(family) ? vocabulary(family).found : undefined
if (file === undefined) throw new Error(`no vocabulary ${family}: ${vocabulary(family).what}`)

const CHARACTERS = 1_200_000
const MESSAGE = 900
const whole = realTexts().join('').slice(0, CHARACTERS)
const messages = Array.from({ length: Math.floor(whole.length / MESSAGE) }, (_, index) =>
  whole.slice(index * MESSAGE, (index + 1) * MESSAGE),
)

const json = readFileSync(file, 'utf8')
const loads = {
  own: await fastest(3, () => loadTokenizer(file)),
  parse: await fastest(3, () => JSON.parse(json)),
}
const own = await loadTokenizer(file)
const native = NativeTokenizer.fromString(json)
const library = new LibraryTokenizer(JSON.parse(json) as object, {})

interface Engine {
  readonly name: string
  readonly encode: (text: string) => unknown
  readonly decode: (ids: readonly number[]) => unknown
}

const options = { addSpecialTokens: false }
const engines: readonly Engine[] = [
  { name: 'this package', encode: (text) => own.encode(text), decode: (ids) => own.decode(ids) },
  {
    name: 'native (`@anush008/tokenizers`)',
    encode: (text) => native.encode(text, undefined, options).then((encoding) => encoding.getIds()),
    decode: (ids) => native.decode([...ids], false),
  },
  {
    name: '`@huggingface/tokenizers`',
    encode: (text) => library.encode(text, { add_special_tokens: false }).ids,
    decode: (ids) => library.decode([...ids], { skip_special_tokens: false }),
  },
]

// The first pass over the text is the only cold one.
const cold = (await timed(() => own.encode(whole))) / 1_000
const ids = [...own.encode(whole)]
const messageIds = messages.map((message) => [...own.encode(message)])
const tokens = ids.length
const messageTokens = messageIds.reduce((sum, list) => sum + list.length, 0)

console.log(`${family}, Node ${process.version}, ${whole.length} characters, ${tokens} tokens\n`)
console.log(
  '| engine | encode, one text | encode, messages | decode, one text | decode, messages |',
)
console.log('| --- | --- | --- | --- | --- |')
const rates: number[][] = []
for (const { name, encode, decode } of engines) {
  const row = [
    tokens / (await fastest(5, () => encode(whole))),
    messageTokens / (await fastest(5, () => each(messages, encode))),
    tokens / (await fastest(5, () => decode(ids))),
    messageTokens / (await fastest(5, () => each(messageIds, decode))),
  ].map((rate) => rate / 1_000)
  rates.push(row)
  console.log(`| ${name} | ${row.map((rate) => `${rate.toFixed(2)} M/s`).join(' | ')} |`)
}
const [ours, theirs] = rates
console.log(
  `| ratio to native | ${ours!.map((rate, index) => `${(rate / theirs![index]!).toFixed(1)} ×`).join(' | ')} |`,
)
console.log(`\nfirst pass: ${(tokens / cold / 1e6).toFixed(2)} M tokens/s`)
console.log(
  `load: ${loads.own.toFixed(0)} ms, of which ${loads.parse.toFixed(0)} ms parse the JSON`,
)

async function each<Item>(items: readonly Item[], run: (item: Item) => unknown): Promise<void> {
  for (const item of items) {
    const result = run(item)
    // Awaiting what is no promise would cost more than the work.
    if (result instanceof Promise) await result
  }
}

async function timed(run: () => unknown): Promise<number> {
  const start = performance.now()
  const result = run()
  if (result instanceof Promise) await result
  return performance.now() - start
}

async function fastest(rounds: number, run: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round += 1) best = Math.min(best, await timed(run))
  return best
}
