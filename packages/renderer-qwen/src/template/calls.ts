import { isRunnable, type JsonObject, type JsonValue, type ToolCall } from '@tiltyard/core'
import { isJsonObjectText, printJson, pythonText } from '@tiltyard/core/rendering'

import type { Scene, Segments } from './scene.ts'

/** Calls in the layout's form, a newline between. */
export function callSegments(calls: readonly ToolCall[], scene: Scene): Segments {
  const render = scene.layout.calls === 'json' ? jsonCall : xmlCall
  return calls.flatMap((call, index) => {
    return index === 0 ? render(call, scene) : ['\n', ...render(call, scene)]
  })
}

function jsonCall(call: ToolCall, { write }: Scene): Segments {
  // The name stands between quotes as it is: the template escapes nothing.
  return write`<tool_call>
{"name": "${call.name}", "arguments": ${jsonArguments(call)}}
</tool_call>`
}

/** What the model wrote, when it wrote JSON; so that nothing is reformatted. */
function jsonArguments(call: ToolCall): string {
  if (!isRunnable(call)) return call.rawArguments
  const { rawArguments: raw } = call
  return raw !== undefined && /^\s*[{"]/.test(raw) ? raw : printJson(call.arguments)
}

function xmlCall(call: ToolCall, { layout, write }: Scene): Segments {
  return write`<tool_call>
<function=${call.name}>${xmlBody(call, layout.scalars)}</function>
</tool_call>`
}

/** What stands between a function's tags. */
function xmlBody(call: ToolCall, scalars: 'json' | 'python'): string {
  const { rawArguments: raw } = call
  if (!isRunnable(call)) return framed(raw ?? '')
  return raw === undefined || isJsonObjectText(raw) || !isXmlBody(raw)
    ? parameters(call.arguments, scalars)
    : raw
}

/** The body of a function that our own parser read. */
function isXmlBody(raw: string): boolean {
  return /^\s*(?:<\/?parameter|$)/.test(raw)
}

function framed(raw: string): string {
  return `${raw.startsWith('\n') ? '' : '\n'}${raw}${raw.endsWith('\n') ? '' : '\n'}`
}

function parameters(args: JsonObject, scalars: 'json' | 'python'): string {
  const lines = Object.entries(args).map(([key, value]) => {
    return `<parameter=${key}>\n${printValue(value, scalars)}\n</parameter>\n`
  })
  return `\n${lines.join('')}`
}

function printValue(value: JsonValue, scalars: 'json' | 'python'): string {
  if (typeof value === 'string') return value
  const scalar = typeof value !== 'object' || value === null
  return scalar && scalars === 'python' ? pythonText(value) : printJson(value)
}
