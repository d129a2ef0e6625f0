import {
  ConfigError,
  unknownName,
  type JsonValue,
  type Renderer,
  type Tokenizer,
} from '@tiltyard/core'

import { layoutNames, type LayoutName } from './layouts/layout.ts'
import type { QwenRendererOptions } from './options.ts'
import { qwenRenderer } from './qwen-renderer.ts'

export interface TemplateRequest {
  /** Name of a layout. */
  readonly template: string
  /** Arguments as its chat template takes them; beside them `bare_tools` and `naive_markers`, as in `QwenRendererOptions`. */
  readonly options: Readonly<Record<string, JsonValue>>
  readonly tokenizer: Tokenizer
}

const known: Readonly<Record<string, keyof QwenRendererOptions>> = {
  enable_thinking: 'thinking',
  preserve_thinking: 'preserveThinking',
  reasoning_effort: 'reasoningEffort',
  add_vision_id: 'addVisionId',
}

/**
 * A renderer from the arguments of the chat template that it mirrors: what `apply_chat_template` takes, and what vector files hold.
 * @throws ConfigError for a template or an argument that doesn't exist, and for a value that the template refuses.
 */
export function qwenRendererFromTemplate(request: TemplateRequest): Renderer {
  const { template, tokenizer } = request
  if (!isLayoutName(template)) {
    throw new ConfigError('template', [
      { at: '', message: unknownName('template', template, layoutNames) },
    ])
  }
  const { bare_tools: bare, naive_markers: naive, ...given } = request.options
  const options = Object.entries(given).map(([key, value]) => {
    const name = known[key]
    if (name !== undefined) return [name, value] as const
    throw new ConfigError('template', [
      { at: 'options', message: unknownName('argument', key, Object.keys(known)) },
    ])
  })
  return qwenRenderer({
    ...Object.fromEntries(options),
    ...(bare === true ? { tools: 'bare' } : {}),
    ...(naive === true ? { markers: 'naive' } : {}),
    layout: template,
    tokenizer,
  })
}

function isLayoutName(name: string): name is LayoutName {
  return (layoutNames as readonly string[]).includes(name)
}
