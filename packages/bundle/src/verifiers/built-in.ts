import type { JsonValue } from '@tiltyard/core'
import { z } from 'zod'

import type { Verifier } from '../author/verifier.ts'
import { sameJson } from '../universe/compare.ts'
import { pointerParts, valueAt } from '../universe/pointer.ts'

/** The universe is as the task's gold leaves it. */
const universeEqualsGold: Verifier = async ({ universe, gold }) => {
  const { state } = await gold()
  return sameJson(universe.state, state)
}

const valuesByPointer = z.record(z.string(), z.json())

/** `expect.universe`: values by JSON Pointer, all of which the universe has; null for what must not be there. */
const universeMatches: Verifier = ({ task, universe }) => {
  const wanted: Readonly<Record<string, JsonValue>> = valuesByPointer.parse(task.expect['universe'])
  return Object.entries(wanted).every(([pointer, value]) => {
    const parts = pointerParts(pointer)
    if (parts === undefined)
      throw new Error(`"${pointer}" under expect.universe is no JSON Pointer`)
    return sameJson(valueAt(universe.state, parts) ?? null, value)
  })
}

const texts = z.array(z.string()).min(1)

/** `expect.reply`: texts that the last reply contains, all of them; case doesn't count. */
const replyContains: Verifier = ({ task, answer }) => {
  const reply = answer.toLowerCase()
  return texts.parse(task.expect['reply']).every((text) => reply.includes(text.toLowerCase()))
}

/** `expect.pattern`: a regular expression that the last reply matches. */
const replyMatches: Verifier = ({ task, answer }) =>
  new RegExp(z.string().parse(task.expect['pattern'])).test(answer)

/** `expect.calls`: names of tools that were called without an error, each at least once. */
const calledTools: Verifier = ({ task, calls }) =>
  texts
    .parse(task.expect['calls'])
    .every((name) => calls.some((call) => call.name === name && call.error === undefined))

/** Verifiers that a manifest's steps may use by name. */
export const builtInVerifiers: Readonly<Record<string, Verifier>> = {
  universeEqualsGold,
  universeMatches,
  replyContains,
  replyMatches,
  calledTools,
}
