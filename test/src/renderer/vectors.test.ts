import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { encodeSegments, splitAtMarkers } from '@tiltyard/core/rendering'
import { qwenRendererFromTemplate } from '@tiltyard/renderer-qwen'
import { checkVectors, formatVectorReport } from '@tiltyard/testkit'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { describe, expect, test } from 'vitest'

import { vocabulary } from '../../support/vocabularies.ts'
import { root } from '../../support/workspace.ts'

interface Case {
  readonly name: string
  readonly template: string
  readonly text?: string
  readonly tokens?: readonly number[]
}

const folder = join(root, 'packages/renderer-qwen/test/vectors')
const files = readdirSync(folder).map((name) => ({
  name,
  json: JSON.parse(readFileSync(join(folder, name), 'utf8')) as readonly Case[],
}))

describe.each([
  { vocabulary: 'Qwen3', file: vocabulary('qwen3').found! },
  { vocabulary: 'the small policy’s', file: deskTokenizerFile },
])('with $vocabulary vocabulary', ({ file }) => {
  test.each(files)('every case of $name passes, token for token', async ({ name, json }) => {
    const tokenizer = await loadTokenizer(file)
    const report = checkVectors({
      files: [{ name, json }],
      renderer: qwenRendererFromTemplate,
      tokenizer,
    })
    expect(formatVectorReport(report)).toBe(`${json.length} passed, 0 failed`)
  })
})

// What servers do that encode the whole prompt at once. The vectors' `tokens` are such ids; Qwen2.5 has fewer markers.
test('text with its markers found anywhere has the ids of the vectors', async () => {
  const tokenizer = await loadTokenizer(vocabulary('qwen3').found!)
  const later = ['<think>', '</think>', '<tool_response>', '</tool_response>']
  const older = {
    ...tokenizer,
    markers: new Map([...tokenizer.markers].filter(([text]) => !later.includes(text))),
  }
  let compared = 0
  for (const { text, tokens, template } of files.flatMap(({ json }) => json)) {
    if (text === undefined || tokens === undefined) continue
    const used = template === 'qwen2_5' ? older : tokenizer
    const [chunk] = encodeSegments(used, splitAtMarkers(used, text))
    expect(chunk?.type === 'tokens' && [...chunk.ids]).toEqual(tokens)
    compared += 1
  }
  expect(compared).toBeGreaterThan(80)
})

test('the renderer gives those ids too, when it is told to compare with such a server', async () => {
  const tokenizer = await loadTokenizer(vocabulary('qwen3').found!)
  const naive = files.map(({ name, json }) => ({
    name,
    json: json
      .filter((vector) => vector.text !== undefined)
      .map((vector) => ({ ...vector, tokens_safe: undefined })),
  }))
  const report = checkVectors({
    files: naive,
    renderer: (request) =>
      qwenRendererFromTemplate({
        ...request,
        options: { ...request.options, naive_markers: true },
      }),
    tokenizer,
  })
  expect(formatVectorReport(report)).toMatch(/^\d+ passed, 0 failed$/)
})
