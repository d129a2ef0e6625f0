import type { JsonObject, JsonValue, ToolSpec } from '@tiltyard/core'

/** Ends a turn for clients that can only call tools. */
export const END_TURN = 'end_turn'

/** Names that an environment's own verbs have. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['reset', 'step', 'state', 'close'])

export const endTurnTool: ToolSpec = {
  name: END_TURN,
  description: 'Gives the reply to the user that ends the turn.',
  parameters: {
    type: 'object',
    properties: { text: { type: 'string', description: 'The reply' } },
    required: ['text'],
  },
}

/** What a call came to. */
export type ToolAnswer =
  | { readonly text: string }
  | {
      readonly error: 'execution_error' | 'tool_not_found'
      readonly message: string
    }

/** The observation of a call. */
export function toolAction(name: string, answer: ToolAnswer): JsonObject {
  return 'text' in answer
    ? { tool_name: name, result: toolResult(answer.text), error: null }
    : {
        tool_name: name,
        result: null,
        error: { error_type: answer.error, message: answer.message },
      }
}

/** The text of a call that succeeded, in the shape of FastMCP's results; clients take `data`. */
export function toolResult(text: string): JsonObject {
  return {
    content: [{ type: 'text', text, annotations: null, meta: null }],
    structured_content: { result: text },
    meta: null,
    data: text,
    is_error: false,
  }
}

/** A tool in the list that an action asks for. */
export function listedTool({ name, description = '', parameters }: ToolSpec): JsonValue {
  return { name, description, input_schema: parameters }
}

/** A tool in the list of JSON-RPC's `tools/list`. */
export function rpcTool({ name, description = '', parameters }: ToolSpec): JsonValue {
  return {
    name,
    title: null,
    description,
    inputSchema: parameters,
    outputSchema: null,
    icons: null,
    annotations: null,
    meta: null,
  }
}
