import { readdirSync, readFileSync } from 'node:fs'

import { checkVectors, formatVectorReport } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { qwenRendererFromTemplate } from '../src/index.ts'
import { tokenizer } from './support.ts'

const folder = new URL('vectors/', import.meta.url)

// Texts and structure; the ids of the model's own vocabulary are compared in test/src/renderer.
describe.each(readdirSync(folder))('%s', (name) => {
  test('renders, reads, continues and weighs as the vectors say', () => {
    const json: unknown = JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
    const report = checkVectors({
      files: [{ name, json }],
      renderer: qwenRendererFromTemplate,
      tokenizer,
    })
    expect(formatVectorReport(report)).toBe(`${(json as unknown[]).length} passed, 0 failed`)
  })
})
