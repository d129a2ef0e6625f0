import type { JsonObject, JsonSchema, JsonValue } from '@tiltyard/core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'

import type { Verifier, Verify } from '../author/verifier.ts'
import { jsonIn } from '../chat/conversation-text.ts'
import type { Task } from '../task.ts'
import { sameJson } from '../universe/compare.ts'
import { pointerParts, valueAt } from '../universe/pointer.ts'
import { commandExit, commandSchema } from './command.ts'
import { rubricJudge } from './judge.ts'

/** A verifier that manifests may use by name, with what it needs of a task. */
export interface BuiltInVerifier {
  readonly verifier: Verifier
  /** What a task lacks for it, or undefined. Asked when the bundle is loaded. */
  readonly lacks: (task: Task) => string | undefined
}

const pointer = z.string().refine((text) => pointerParts(text) !== undefined, 'no JSON Pointer')
const texts = z.array(z.string()).min(1)
const jsonSchema: z.ZodType<JsonObject> = z
  .record(z.string(), z.json())
  .refine(isSchema, 'no JSON Schema')
const pattern = z.string().refine(isPattern, 'no regular expression')

/** Verifiers that a manifest's steps may use by name. */
export const builtInVerifiers: Readonly<Record<string, BuiltInVerifier>> = {
  /** The universe is as the task's gold leaves it. */
  universeEqualsGold: {
    lacks: ({ gold }) => (gold === undefined ? 'it needs "gold"' : undefined),
    verifier: async ({ universe, gold }) => sameJson(universe.state, (await gold()).state),
  },
  /** `expect.universe`: values by JSON Pointer, all of which the universe has; null for what must not be there. */
  universeMatches: expecting('universe', z.record(pointer, z.json()), (wanted, { universe }) =>
    Object.entries(wanted).every(([at, value]) =>
      sameJson(valueAt(universe.state, pointerParts(at)!) ?? null, value),
    ),
  ),
  /** `expect.reply`: texts that the last reply contains, all of them; case doesn't count. */
  replyContains: expecting('reply', texts, (wanted, { answer }) =>
    wanted.every((text) => answer.toLowerCase().includes(text.toLowerCase())),
  ),
  /** `expect.pattern`: a regular expression that the last reply matches. */
  replyMatches: expecting('pattern', pattern, (wanted, { answer }) =>
    new RegExp(wanted, 'u').test(answer),
  ),
  /** `expect.calls`: names of tools that were called without an error, each at least once. */
  calledTools: expecting('calls', texts, (wanted, { calls }) =>
    wanted.every((name) => calls.some((call) => call.name === name && call.error === undefined)),
  ),
  /** `expect.schema`: a JSON Schema that the last reply, JSON alone or in a code fence, fits. */
  jsonReply: expecting('schema', jsonSchema, (schema, { answer }) => fitsSchema(answer, schema)),
  /** `expect.command`: a script, and files for it, that the sandbox is tried with after the end. */
  commandExit: { verifier: commandExit, lacks: lacking('command', commandSchema) },
  /** `expect.rubric`: a text by which a model judges the conversation, from 0 to 1. */
  judge: { verifier: rubricJudge, lacks: lacking('rubric', z.string().min(1)) },
}

function expecting<Expected extends JsonValue>(
  key: string,
  schema: z.ZodType<Expected>,
  judge: (expected: Expected, context: Parameters<Verify>[0]) => boolean,
): BuiltInVerifier {
  return {
    lacks: lacking(key, schema),
    verifier: (context) => judge(schema.parse(context.task.expect[key]), context),
  }
}

function lacking(key: string, schema: z.ZodType): BuiltInVerifier['lacks'] {
  return ({ expect = {} }) => {
    const { success, error } = schema.safeParse(expect[key])
    if (success) return undefined
    return `it needs "expect.${key}": ${error.issues.map(({ message }) => message).join('; ')}`
  }
}

function fitsSchema(reply: string, schema: JsonSchema): boolean {
  let value: unknown
  try {
    value = jsonIn(reply)
  } catch {
    return false
  }
  return new Ajv2020({ strict: false }).validate(schema, value)
}

function isSchema(value: JsonObject): boolean {
  return new Ajv2020({ strict: false }).validateSchema(value) === true
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}
