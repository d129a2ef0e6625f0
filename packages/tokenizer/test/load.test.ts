import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { TiltyardError } from '@tiltyard/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { deskTokenizerFile, loadTokenizer } from '../src/index.ts'

interface Definition {
  added_tokens: { id: number; content: string }[]
  normalizer: unknown
  pre_tokenizer: { pretokenizers: unknown[] }
  model: { vocab: Record<string, number>; merges: unknown[]; ignore_merges: boolean }
}

/** A fresh copy of the desk's definition. */
function desk(): Definition {
  return JSON.parse(readFileSync(deskTokenizerFile, 'utf8')) as Definition
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-tokenizer-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

test('a path, a URL and the parsed JSON give the same tokenizer', async () => {
  const tokenizers = await Promise.all([
    loadTokenizer(fileURLToPath(deskTokenizerFile)),
    loadTokenizer(deskTokenizerFile),
    loadTokenizer(desk(), { name: 'models' }),
  ])
  for (const tokenizer of tokenizers) {
    expect(tokenizer).toMatchObject({ name: 'models', fingerprint: tokenizers[0].fingerprint })
  }
})

describe('the fingerprint', () => {
  test('is the same for merges in either spelling and keys in any order', async () => {
    const plain = await fingerprint(() => {})
    expect(
      await fingerprint(({ model }) => {
        model.merges = model.merges.map((pair) => (pair as string[]).join(' '))
        model.vocab = Object.fromEntries(Object.entries(model.vocab).toReversed())
      }),
    ).toBe(plain)
  })

  test('changes with whatever changes ids', async () => {
    const all = await Promise.all([
      fingerprint(() => {}),
      fingerprint((definition) => (definition.normalizer = null)),
      fingerprint(({ model }) => (model.ignore_merges = false)),
      fingerprint(({ model }) => model.merges.pop()),
      fingerprint((definition) => definition.added_tokens.pop()),
      fingerprint(({ pre_tokenizer: { pretokenizers } }) => pretokenizers.shift()),
      fingerprint(({ model: { vocab } }) => {
        const [a, b] = [vocab['a']!, vocab['b']!]
        vocab['a'] = b
        vocab['b'] = a
      }),
    ])
    expect(new Set(all).size).toBe(all.length)
  })
})

describe('a broken file is an error that names the part', () => {
  test.each<[string, (definition: Definition) => unknown, RegExp]>([
    ['no object', () => [], /expected a JSON object/],
    ['no model', () => ({ version: '1.0' }), /model: missing/],
    [
      'a marker without an id',
      (it) => (it.added_tokens[3] = { content: 'x' } as never),
      /added_tokens\.3/,
    ],
    [
      'a token without an id',
      (it) => (it.model.vocab['a'] = -1),
      /model\.vocab\.a: expected an id/,
    ],
    [
      'a byte that is missing',
      (it) => delete it.model.vocab['a'],
      /lacks the byte 97, spelled "a"/,
    ],
    [
      'no merges',
      (it) => delete (it.model as Partial<Definition['model']>).merges,
      /model\.merges/,
    ],
    [
      'a merge of one',
      (it) => void (it.model.merges[2] = ['a']),
      /model\.merges\.2: expected two tokens/,
    ],
    [
      'a merge into nothing',
      (it) => void (it.model.merges[0] = ['a', '!']),
      /model\.merges\.0: .*"a", "!"/,
    ],
  ])('%s', async (_, spoil, message) => {
    const definition = desk()
    const spoiled = spoil(definition)
    const given =
      Array.isArray(spoiled) || (spoiled as { version?: string })?.version ? spoiled : definition
    const loading = loadTokenizer(given as object, { name: 'broken' })
    await expect(loading).rejects.toThrow(message)
    await expect(loading).rejects.toSatisfy((error) => TiltyardError.is(error, 'CONFIG'))
  })

  test('a file that isn’t there, or was cut', async () => {
    await expect(loadTokenizer(join(folder, 'none.json'))).rejects.toThrow(
      /none\.json: cannot be read/,
    )
    const cut = join(folder, 'cut.json')
    await writeFile(cut, '{"version": "1.0", "model": {"vocab": {"a": 1')
    await expect(loadTokenizer(cut)).rejects.toThrow(/cut\.json: is no JSON/)
  })
})

async function fingerprint(change: (definition: Definition) => void): Promise<string> {
  const definition = desk()
  change(definition)
  return (await loadTokenizer(definition)).fingerprint
}
