import { type Conversation, promptIds, type Renderer, type Tokenizer } from '@tiltyard/core'
import { qwenRenderer, type QwenRendererOptions } from '@tiltyard/renderer-qwen'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'

/** What stands between two tokens. */
const BORDER = '·'

export interface PromptTokensOptions {
  /** A `tokenizer.json`. Default: the small policy's. */
  readonly tokenizer?: string
  /** Default `qwen3_5`. */
  readonly layout?: string
}

/** Shows conversations as a model is given them. Its vocabulary is read when it is first asked. */
export function promptTokens({ tokenizer: file, layout = 'qwen3_5' }: PromptTokensOptions) {
  let loaded: Promise<{ readonly tokenizer: Tokenizer; readonly renderer: Renderer }> | undefined
  const load = async () => {
    const tokenizer = await loadTokenizer(file ?? deskTokenizerFile)
    const renderer = qwenRenderer({
      layout: layout as QwenRendererOptions['layout'],
      tokenizer,
      thinking: false,
    })
    return { tokenizer, renderer }
  }
  /** The prompt's text with a border between its tokens, and how many they are. */
  return async (conversation: Conversation): Promise<readonly string[]> => {
    const { tokenizer, renderer } = await (loaded ??= load())
    const ids = promptIds(renderer.prompt(conversation))
    const text = [...ids].map((id) => tokenizer.decode([id])).join(BORDER)
    return [...text.split('\n'), `(${ids.length} tokens, as ${renderer.name} writes them)`]
  }
}
