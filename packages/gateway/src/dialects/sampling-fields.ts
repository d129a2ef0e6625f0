import { invalidRequest, unsupportedParameter } from '../errors.ts'
import type { Fields } from './fields.ts'

/** What the gateway makes of fields that it can't honour: refused, or taken without effect and named in `x-tiltyard-ignored`. */
export interface Leniency {
  readonly toolChoice: boolean
  readonly responseFormat: boolean
}

/** Fields that change nothing here, whatever their value. */
const withoutEffect = [
  'user',
  'metadata',
  'store',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
] as const

export interface SamplingFields {
  readonly temperature?: number
  readonly topK?: number
  readonly topP?: number
  readonly minP?: number
  readonly seed?: number
}

/** Sampling settings, which all dialects spell alike. */
export function samplingFields(body: Fields): SamplingFields {
  const temperature = body.number('temperature', 0, 2)
  const topP = body.number('top_p', 0, 1)
  const topK = body.integer('top_k', -1)
  const minP = body.number('min_p', 0, 1)
  const seed = body.integer('seed', Number.MIN_SAFE_INTEGER)
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined || topK < 1 ? {} : { topK }),
    ...(minP === undefined || minP === 0 ? {} : { minP }),
    ...(seed === undefined ? {} : { seed: seed >>> 0 }),
  }
}

/** Fields that bend the distribution away from the recorded log-probabilities are refused. */
export function refuseBending(body: Fields): void {
  for (const name of ['frequency_penalty', 'presence_penalty'])
    if ((body.number(name, -2, 2) ?? 0) !== 0)
      throw unsupportedParameter(
        name,
        `${name} is not supported: it bends the policy; leave it out`,
      )
  const bias = body.object('logit_bias')
  if (bias !== undefined && Object.keys(bias.value).length > 0)
    throw unsupportedParameter('logit_bias', 'logit_bias is not supported; leave it out')
}

/** The smaller of the limits that were given under these names. */
export function tokenLimit(body: Fields, ...names: readonly string[]): number | undefined {
  const given = names.flatMap((name) => body.integer(name, 1) ?? [])
  return given.length === 0 ? undefined : Math.min(...given)
}

export function stopTexts(body: Fields): readonly string[] {
  const given = body.raw('stop')
  if (given === undefined) return []
  const texts = typeof given === 'string' ? [given] : given
  if (!Array.isArray(texts) || texts.length > 4 || !texts.every(isText))
    throw invalidRequest('stop must be a text or up to four of them, none empty', 'stop')
  return texts
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Names of fields that had no effect, those without any among them. */
export function ignoredFields(body: Fields, more: readonly string[]): readonly string[] {
  for (const name of withoutEffect) body.raw(name)
  return [...more, ...body.unread()]
}

/** A choice of tool that can't be forced is refused, or ignored if that is allowed. Gives whether tools are shown at all. */
export function readToolChoice(
  body: Fields,
  leniency: Leniency,
  ignored: string[],
): 'auto' | 'none' {
  const choice = body.raw('tool_choice')
  if (choice === undefined || choice === 'auto') return 'auto'
  if (choice === 'none') return 'none'
  if (!leniency.toolChoice)
    throw unsupportedParameter(
      'tool_choice',
      'this model can’t be forced to call a tool; use "auto" or "none"',
    )
  ignored.push('tool_choice')
  return 'auto'
}

/** Only text is promised: JSON that isn't demanded strictly is ignored, strictly demanded it is refused. */
export function readFormat(
  format: Fields | undefined,
  param: string,
  leniency: Leniency,
  ignored: string[],
): void {
  const type = format?.string('type')
  if (format === undefined || type === undefined || type === 'text') return
  if (type !== 'json_object' && type !== 'json_schema')
    throw invalidRequest(`${param} has an unknown type`, param)
  const strict = (format.object('json_schema') ?? format).boolean('strict') === true
  if (strict && !leniency.responseFormat)
    throw unsupportedParameter(
      param,
      'this model’s replies can’t be held to a schema; leave strict out and check the reply',
    )
  ignored.push(param)
}
