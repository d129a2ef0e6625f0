/** Names of the layouts, as the vectors and most model cards write them. */
export const layoutNames = [
  'qwen2_5',
  'qwen3',
  'qwen3_instruct_2507',
  'qwen3_thinking_2507',
  'qwen3_coder',
  'qwen3_5',
  'qwen3_6',
  'qwen3_8',
  'qwen3_vl',
] as const

export type LayoutName = (typeof layoutNames)[number]

/** Where an assistant message keeps its think block. */
type ThinkRule =
  /** No place for reasoning: the field is ignored, tags in the content are content. */
  | 'none'
  /** After the last query, when there is reasoning or the message is the last. */
  | 'reasoned'
  /** After the last query, empty or not. */
  | 'always'

/** What one chat template does, as data. The rules are read by the functions in `template/` and `parse/`. */
export interface Layout {
  readonly name: LayoutName
  /** First digits of the SHA-256 of the template that this mirrors, where its owner's file is known by hash. */
  readonly templateHash?: string
  /** Tags that are plain text in the family's vocabulary, though later ones have markers for them. */
  readonly plainTags: readonly string[]
  /** Stands in for a missing system message. */
  readonly defaultSystem?: { readonly text: string; readonly when: 'always' | 'tools' }
  /** An empty system message still writes its block. */
  readonly emptySystemBlock: boolean
  /** Tool definitions: JSON lines in Qwen's first wording, nested XML, or JSON lines before the system text. */
  readonly tools: 'json' | 'xml' | 'json_first'
  readonly calls: 'json' | 'xml'
  /** How scalars other than strings print in XML calls. */
  readonly scalars: 'json' | 'python'
  /** Which content is trimmed: all of it, or only that which stands beside calls. */
  readonly trim: 'none' | 'beside_calls' | 'all'
  /** What becomes of a system message that isn't the first. */
  readonly laterSystem: 'block' | 'refused' | 'dropped'
  /** Refuses conversations without a user message that asks something. */
  readonly needsQuery: boolean
  /** Refuses conversations that begin with a tool result: its template would leave out the opening of the block. */
  readonly refusesToolFirst: boolean
  /** Whether a newline stands before the end of a block of tool results. */
  readonly newlineAfterResults: boolean
  readonly thinking: 'never' | 'optional' | 'always'
  readonly think: ThinkRule
  /** Reasoning may stand inline in the content, between tags. */
  readonly inlineThink: boolean
  /** How the prompt ends when thinking is on: with an opened block, or just the header. */
  readonly opensThink: boolean
  /** Default of the option that keeps every think block; undefined when there is no such option. */
  readonly preserveThinking?: boolean
  readonly reasoningEffort: boolean
  readonly images: boolean
}
