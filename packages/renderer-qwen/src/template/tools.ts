import type { JsonObject, JsonValue, ToolSpec } from '@tiltyard/core'
import { isJsonObject, printJson, pythonText, pythonTrim } from '@tiltyard/core/rendering'

import type { Scene, Segments } from './scene.ts'

/** The block that declares the tools and tells how to call them. */
export function toolBlock(tools: readonly ToolSpec[], scene: Scene): Segments {
  const { layout, write } = scene
  if (layout.tools === 'xml') return xmlBlock(tools.map(toolXml).join('\n'), scene)
  const lines = tools.map((tool) => printJson(printedTool(tool, scene.bareTools))).join('\n')
  if (layout.tools === 'json_first') return xmlBlock(lines, scene)
  return write`# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
${lines}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>`
}

function xmlBlock(tools: string, { write }: Scene): Segments {
  return write`# Tools

You have access to the following functions:

<tools>
${tools}
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>`
}

/** As it was passed, keys in their order and keys that we don't know among them. */
function printedTool(tool: ToolSpec, bare: boolean): JsonObject {
  const spec = withoutAbsent(tool)
  return bare ? spec : { type: 'function', function: spec }
}

function withoutAbsent(tool: ToolSpec): JsonObject {
  const members = Object.entries(tool as unknown as Readonly<Record<string, JsonValue | undefined>>)
  return Object.fromEntries(
    members.filter((member): member is [string, JsonValue] => member[1] !== undefined),
  )
}

/** A tool as Coder's nested elements; what has no element of its own follows under its key. */
function toolXml(tool: ToolSpec): string {
  const { name, description, parameters, ...others } = withoutAbsent(tool)
  const lines = ['<function>', element('name', name!)]
  if (typeof description === 'string') lines.push(element('description', pythonTrim(description)))
  lines.push('<parameters>')
  const schema = isJsonObject(parameters) ? parameters : {}
  const { type: _, properties, ...schemaOthers } = schema
  for (const [key, property] of Object.entries(isJsonObject(properties) ? properties : {})) {
    lines.push(...parameterXml(key, isJsonObject(property) ? property : {}))
  }
  lines.push(...otherElements(schemaOthers), '</parameters>')
  const { type: __, ...functionOthers } = others
  lines.push(...otherElements(functionOthers), '</function>')
  return lines.join('\n')
}

function parameterXml(key: string, property: JsonObject): readonly string[] {
  const { name: _, type, description, ...others } = property
  const lines = ['<parameter>', element('name', key)]
  if (type !== undefined) lines.push(element('type', pythonText(type)))
  if (typeof description === 'string') lines.push(element('description', pythonTrim(description)))
  return [...lines, ...otherElements(others), '</parameter>']
}

function otherElements(members: JsonObject): readonly string[] {
  return Object.entries(members).map(([key, value]) => {
    const structured = typeof value === 'object' && value !== null
    return element(key, structured ? printJson(value) : pythonText(value))
  })
}

function element(tag: string, value: JsonValue): string {
  return `<${tag}>${typeof value === 'string' ? value : pythonText(value)}</${tag}>`
}
