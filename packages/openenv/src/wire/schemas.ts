import type { JsonObject } from '@tiltyard/core'

const metadata = (of: string): JsonObject => ({
  title: 'Metadata',
  type: 'object',
  additionalProperties: true,
  description: `Facts about the ${of}`,
})

/**
 * What `GET /schema` answers. Consumers tell a tool environment by the action's title or by its members `tool_name` and
 * `arguments`; both agree here.
 */
export const environmentSchemas: JsonObject = {
  action: {
    title: 'CallToolAction',
    type: 'object',
    description:
      'Calls a tool. With type "list_tools" lists them; with type "end_turn" and a text gives the reply that ends the turn.',
    additionalProperties: false,
    required: ['tool_name'],
    properties: {
      metadata: metadata('action'),
      type: { title: 'Type', type: 'string', const: 'call_tool', default: 'call_tool' },
      tool_name: { title: 'Tool Name', type: 'string', description: 'Name of the tool' },
      arguments: {
        title: 'Arguments',
        type: 'object',
        additionalProperties: true,
        description: 'Arguments of the tool',
      },
    },
  },
  observation: {
    title: 'CallToolObservation',
    type: 'object',
    additionalProperties: true,
    properties: {
      done: { title: 'Done', type: 'boolean', default: false },
      reward: { title: 'Reward', anyOf: [{ type: 'number' }, { type: 'null' }], default: null },
      metadata: metadata('observation'),
      messages: {
        title: 'Messages',
        type: 'array',
        description: 'What the policy is shown: of a reset, or since the turn ended',
        items: { type: 'object' },
      },
      tools: { title: 'Tools', type: 'array', items: { type: 'object' } },
      task_id: { title: 'Task Id', type: 'string' },
      turn: { title: 'Turn', type: 'integer', minimum: 0 },
      tool_name: { title: 'Tool Name', type: 'string' },
      result: { title: 'Result' },
      error: { title: 'Error' },
    },
  },
  state: {
    title: 'State',
    type: 'object',
    additionalProperties: true,
    properties: {
      episode_id: { title: 'Episode Id', anyOf: [{ type: 'string' }, { type: 'null' }] },
      step_count: { title: 'Step Count', type: 'integer', minimum: 0, default: 0 },
      task_id: { title: 'Task Id', anyOf: [{ type: 'string' }, { type: 'null' }] },
      turn: { title: 'Turn', type: 'integer', minimum: 0 },
      done: { title: 'Done', type: 'boolean' },
    },
  },
}
