import { createHash } from 'node:crypto'

import type { LayoutName } from './layouts/layout.ts'
import { layouts } from './layouts/table.ts'

/** Models by the names that their owner published them under. A fine-tune names its layout itself. */
const models: Readonly<Record<LayoutName, string>> = {
  qwen2_5:
    'Qwen2.5-0.5B-Instruct Qwen2.5-1.5B-Instruct Qwen2.5-3B-Instruct Qwen2.5-7B-Instruct Qwen2.5-14B-Instruct Qwen2.5-32B-Instruct Qwen2.5-72B-Instruct',
  qwen3:
    'Qwen3-0.6B Qwen3-1.7B Qwen3-4B Qwen3-8B Qwen3-14B Qwen3-32B Qwen3-30B-A3B Qwen3-235B-A22B',
  qwen3_instruct_2507:
    'Qwen3-4B-Instruct-2507 Qwen3-30B-A3B-Instruct-2507 Qwen3-235B-A22B-Instruct-2507',
  qwen3_thinking_2507:
    'Qwen3-4B-Thinking-2507 Qwen3-30B-A3B-Thinking-2507 Qwen3-235B-A22B-Thinking-2507',
  qwen3_coder: 'Qwen3-Coder-30B-A3B-Instruct Qwen3-Coder-480B-A35B-Instruct',
  qwen3_5: 'Qwen3.5-4B Qwen3.5-9B Qwen3.5-27B Qwen3.5-35B-A3B Qwen3.5-397B-A17B',
  qwen3_6: 'Qwen3.6-27B Qwen3.6-35B-A3B',
  qwen3_8: 'Qwen3.8-27B',
  qwen3_vl: 'Qwen3-VL-30B-A3B-Instruct Qwen3-VL-235B-A22B-Instruct',
}

/** The layout of a model by its exact name, with or without the owner (`Qwen/Qwen3-8B`). Undefined for a name that isn't known. */
export function qwenLayoutOf(model: string): LayoutName | undefined {
  const name = model.replace(/^Qwen\//, '')
  const found = Object.entries(models).find(([, names]) => names.split(' ').includes(name))
  return found?.[0] as LayoutName | undefined
}

/**
 * Owners revise templates in place. Given the text of a model's chat template, says how it differs from the one that a layout
 * mirrors: a sentence for a warning; undefined when it is the same, or when that template was never published under a hash.
 */
export function templateMismatch(layout: LayoutName, template: string): string | undefined {
  const { templateHash } = layouts[layout]
  if (templateHash === undefined) return undefined
  const hash = createHash('sha256').update(template).digest('hex')
  return hash.startsWith(templateHash)
    ? undefined
    : `${layout} mirrors the template with hash ${templateHash}…; this one has ${hash.slice(0, templateHash.length)}…: compare a few prompts before you train`
}
