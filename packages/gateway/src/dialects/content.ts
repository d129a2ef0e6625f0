import {
  readImage,
  type Content,
  type ImagePart,
  type JsonObject,
  type JsonValue,
  type TextPart,
  type ToolCall,
  type ToolSpec,
} from '@tiltyard/core'

import { invalidRequest, unsupportedContent, unusableImage } from '../errors.ts'
import { isObject } from './fields.ts'

const textTypes: ReadonlySet<JsonValue | undefined> = new Set([
  'text',
  'input_text',
  'output_text',
  'refusal',
])

/** Text of a content: a string, or parts of text joined. Null and absent are empty. */
export function contentText(content: JsonValue | undefined, param: string): string {
  if (content === undefined || content === null) return ''
  if (typeof content === 'string') return content
  return partsOf(content, param)
    .map((part) => textOfPart(part, param))
    .join('')
}

/** A content that may hold images; without any it is its text. */
export function contentOf(content: JsonValue | undefined, param: string): Content {
  if (!Array.isArray(content) || !content.some(isImage)) return contentText(content, param)
  return partsOf(content, param).map((part): TextPart | ImagePart =>
    isImage(part) ? imageOf(part, param) : { type: 'text', text: textOfPart(part, param) },
  )
}

function partsOf(content: JsonValue, param: string): readonly JsonValue[] {
  if (Array.isArray(content)) return content as readonly JsonValue[]
  throw invalidRequest(`${param} must be a text or a list of parts`, param)
}

function textOfPart(part: JsonValue, param: string): string {
  const type = isObject(part) ? part['type'] : undefined
  if (!isObject(part) || !textTypes.has(type))
    throw unsupportedContent(param, typeof type === 'string' ? type : 'unknown')
  const text = part['text'] ?? part['refusal']
  if (typeof text !== 'string') throw invalidRequest(`a part of ${param} has no text`, param)
  return text
}

function isImage(part: JsonValue): part is JsonObject {
  return isObject(part) && (part['type'] === 'image_url' || part['type'] === 'input_image')
}

/** Chat completions hold the address in an object, responses bare. */
function imageOf(part: JsonObject, param: string): ImagePart {
  const given = part['image_url']
  const url = isObject(given) ? given['url'] : given
  const encoded = typeof url === 'string' ? /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1] : undefined
  if (encoded === undefined) throw unusableImage(param, 'nothing is fetched for a prompt')
  const image = readImage(Buffer.from(encoded, 'base64'))
  if (image === undefined) throw unusableImage(param, 'its bytes are neither')
  return image
}

/** A call as a client sends it back. */
export function echoedCall(id: string, name: string, raw: string): ToolCall {
  try {
    const value: unknown = JSON.parse(raw)
    if (isObject(value)) return { id, name, arguments: value, rawArguments: raw }
  } catch {
    // Kept as it is.
  }
  return { id, name, rawArguments: raw, error: 'the arguments are no JSON object' }
}

/** A tool as the renderer knows it, from a function's name, description and schema. */
export function toolSpec(definition: JsonObject, param: string): ToolSpec {
  const { name, description, parameters } = definition
  if (typeof name !== 'string' || name === '')
    throw invalidRequest(`a tool of ${param} has no name`, param)
  return {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    parameters: isObject(parameters) ? parameters : { type: 'object', properties: {} },
  }
}
