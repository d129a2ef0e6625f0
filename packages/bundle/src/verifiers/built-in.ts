import type { JsonObject, JsonValue } from '@tiltyard/core'
import { z } from 'zod'

import type { Verify } from '../author/verifier.ts'
import type { Task } from '../task.ts'
import { sameJson } from '../universe/compare.ts'
import { pointerParts, valueAt } from '../universe/pointer.ts'

/** A verifier that manifests may use by name, with what it needs of a task. */
export interface BuiltInVerifier {
  readonly verify: Verify
  /** What a task lacks for it, or undefined. Asked when the bundle is loaded. */
  readonly lacks: (task: Task) => string | undefined
}

const pointer = z.string().refine((text) => pointerParts(text) !== undefined, 'no JSON Pointer')
const texts = z.array(z.string()).min(1)
const pattern = z.string().refine(isPattern, 'no regular expression')

/** Verifiers that a manifest's steps may use by name. */
export const builtInVerifiers: Readonly<Record<string, BuiltInVerifier>> = {
  /** The universe is as the task's gold leaves it. */
  universeEqualsGold: {
    lacks: ({ gold }) => (gold === undefined ? 'it needs "gold"' : undefined),
    verify: async ({ universe, gold }) => sameJson(universe.state, (await gold()).state),
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
}

function expecting<Expected extends JsonValue>(
  key: string,
  schema: z.ZodType<Expected>,
  judge: (expected: Expected, context: Parameters<Verify>[0]) => boolean,
): BuiltInVerifier {
  const read = (expect: JsonObject) => schema.safeParse(expect[key])
  return {
    lacks: ({ expect = {} }) => {
      const { success, error } = read(expect)
      if (success) return undefined
      return `it needs "expect.${key}": ${error.issues.map(({ message }) => message).join('; ')}`
    },
    verify: (context) => judge(schema.parse(context.task.expect[key]), context),
  }
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}
