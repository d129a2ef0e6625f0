import type { ConformanceCase } from './cases.ts'
import { reasons, type RendererCasesOptions, type Subject } from './renderer/fixture.ts'
import { readPromises } from './renderer/read-cases.ts'
import { writePromises } from './renderer/write-cases.ts'

export type { RendererCasesOptions, RendererFeature } from './renderer/fixture.ts'

/**
 * What every renderer promises: round trips, arguments typed by the schema, streams that end like the whole, no marker from a
 * caller's text, prompts that go on from the very ids that were sampled, masks, determinism, cost. That a layout is its model's is
 * for vectors to show (`checkVectors`).
 *
 * A case that a renderer can't have by its capabilities is shown as skipped with the reason; so is what it `lacks` by declaration.
 */
export function rendererCases(options: RendererCasesOptions): readonly ConformanceCase[] {
  const { create, tokenizer, lacks = {} } = options
  const subject: Subject = { renderer: create(tokenizer), tokenizer }
  const { capabilities, history } = subject.renderer

  const skipOf = (needs: 'tools' | 'reasoning' | 'tool_loop' | undefined) => {
    if (needs === undefined) return undefined
    if (needs === 'reasoning') return reasons(subject) ? undefined : 'replies do not reason'
    if (!capabilities.tools) return 'the layout has no tools'
    return needs === 'tools' || history.extendsToolLoop ? undefined : history.breaks
  }

  const reading = readPromises.map(({ name, needs, feature, body }) => ({
    name,
    skip: skipOf(needs) ?? (feature === undefined ? undefined : lacks[feature]),
    run: async () => body(subject),
  }))
  const writing = writePromises.map(({ name, needs, body }) => ({
    name,
    skip: skipOf(needs),
    run: async () => body(subject, options),
  }))
  return [...reading, ...writing].map(({ skip, ...promise }) => {
    return skip === undefined ? promise : { ...promise, skip }
  })
}
