import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

import { ConfigError, type Tokenizer } from '@tiltyard/core'

import { bpeTokenizer } from './bpe/bpe-tokenizer.ts'
import { bpeRecipe } from './bpe/recipe.ts'
import { readDefinition } from './definition.ts'

export interface TokenizerOptions {
  /** Name for records and errors. Default: the folder of the file, or `tokenizer`. */
  readonly name?: string
}

/**
 * A tokenizer from a `tokenizer.json`: a path, a file URL, or the parsed JSON. Nothing is fetched.
 *
 * Byte-level BPE (Qwen, Llama 3, DeepSeek V3, gpt-oss and most others of today) runs on an engine of our own; every other kind
 * on `@huggingface/tokenizers`.
 * @throws ConfigError for a file that can't be read, is no JSON, or lacks a part; it names the part.
 */
export async function loadTokenizer(
  source: string | URL | object,
  options: TokenizerOptions = {},
): Promise<Tokenizer> {
  const file = typeof source === 'string' || source instanceof URL ? source : undefined
  const name = options.name ?? (file === undefined ? 'tokenizer' : folderOf(file))
  const definition = readDefinition(file === undefined ? source : await readJson(file), name)
  const recipe = bpeRecipe(definition)
  if (!('why' in recipe)) return bpeTokenizer(definition, recipe, name)
  const { libraryTokenizer } = await import('./library/library-tokenizer.ts')
  return libraryTokenizer(definition, name, recipe.why)
}

async function readJson(file: string | URL): Promise<unknown> {
  const fail = (message: string, cause: unknown): never => {
    throw new ConfigError('tokenizer', [{ at: String(file), message }], { cause })
  }
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    return fail('cannot be read; give the path of a tokenizer.json', error)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    return fail('is no JSON; is the download complete?', error)
  }
}

function folderOf(file: string | URL): string {
  const path = file instanceof URL ? fileURLToPath(file) : file
  return basename(dirname(path)) || 'tokenizer'
}
