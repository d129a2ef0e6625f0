import type { Layout, LayoutName } from './layout.ts'

/** JSON calls and no reasoning: the base of the older layouts. */
const json = {
  plainTags: [],
  emptySystemBlock: true,
  tools: 'json',
  calls: 'json',
  scalars: 'json',
  trim: 'none',
  laterSystem: 'block',
  needsQuery: false,
  refusesToolFirst: false,
  newlineAfterResults: false,
  thinking: 'never',
  think: 'none',
  inlineThink: false,
  opensThink: false,
  reasoningEffort: false,
  images: false,
} as const satisfies Partial<Layout>

/** XML calls, everything trimmed, a think block in every reply: 3.5 and later. */
const xml = {
  ...json,
  tools: 'json_first',
  calls: 'xml',
  trim: 'all',
  laterSystem: 'refused',
  needsQuery: true,
  refusesToolFirst: true,
  thinking: 'optional',
  think: 'always',
  inlineThink: true,
  opensThink: true,
  images: true,
} as const satisfies Partial<Layout>

export const layouts: Readonly<Record<LayoutName, Layout>> = {
  qwen2_5: {
    ...json,
    name: 'qwen2_5',
    plainTags: ['<tool_response>', '</tool_response>', '<think>', '</think>'],
    defaultSystem: {
      text: 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.',
      when: 'always',
    },
  },
  qwen3: {
    ...json,
    name: 'qwen3',
    templateHash: 'a55ee1b1',
    thinking: 'optional',
    think: 'reasoned',
    inlineThink: true,
  },
  qwen3_instruct_2507: { ...json, name: 'qwen3_instruct_2507' },
  qwen3_thinking_2507: {
    ...json,
    name: 'qwen3_thinking_2507',
    thinking: 'always',
    think: 'reasoned',
    inlineThink: true,
    opensThink: true,
  },
  qwen3_coder: {
    ...json,
    name: 'qwen3_coder',
    templateHash: '5a38bfa0',
    defaultSystem: {
      text: 'You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks.',
      when: 'tools',
    },
    tools: 'xml',
    calls: 'xml',
    scalars: 'python',
    trim: 'beside_calls',
    refusesToolFirst: true,
    newlineAfterResults: true,
  },
  qwen3_5: { ...xml, name: 'qwen3_5', templateHash: 'a4aee8af', scalars: 'python' },
  qwen3_6: { ...xml, name: 'qwen3_6', templateHash: 'e84f32a2', preserveThinking: false },
  qwen3_8: {
    ...xml,
    name: 'qwen3_8',
    emptySystemBlock: false,
    inlineThink: false,
    preserveThinking: true,
    reasoningEffort: true,
  },
  qwen3_vl: { ...json, name: 'qwen3_vl', laterSystem: 'dropped', images: true },
}
