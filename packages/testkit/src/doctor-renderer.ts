import type { Tokenizer } from '@tiltyard/core'

import { checkVector, type RendererFactory } from './vectors/check.ts'
import { readVectors } from './vectors/format.ts'

export type { RendererFactory, RendererRequest } from './vectors/check.ts'
export type { TemplateOptions } from './vectors/format.ts'

export interface CheckVectorsOptions {
  /** Vector files: their names, for the report, and their parsed JSON. */
  readonly files: readonly { readonly name: string; readonly json: unknown }[]
  /** Makes the renderer for a case, by layout and template options. */
  readonly renderer: RendererFactory
  /**
   * The vocabulary that the renderers get. Where a case's ids belong to another one, its texts are compared instead.
   */
  readonly tokenizer: Tokenizer
}

export interface VectorFailure {
  readonly file: string
  readonly name: string
  readonly template: string
  readonly differences: readonly string[]
}

export interface VectorReport {
  readonly passed: number
  readonly failures: readonly VectorFailure[]
}

/**
 * Runs vector files of the kinds render, parse, prefix and weights against a renderer: the library half of
 * `tiltyard doctor renderer`.
 * @throws ConfigError for a file that holds no vectors; it names the file, the case and the key.
 */
export function checkVectors({ files, renderer, tokenizer }: CheckVectorsOptions): VectorReport {
  const read = files.map(({ name, json }) => ({ file: name, vectors: readVectors(name, json) }))
  const failures: VectorFailure[] = []
  let passed = 0
  for (const { file, vectors } of read) {
    for (const vector of vectors) {
      const differences = checkVector(vector, renderer, tokenizer)
      const { name, template } = vector.vector
      if (differences.length === 0) passed += 1
      else failures.push({ file, name, template, differences })
    }
  }
  return { passed, failures }
}

/** The report as a person reads it: each failing case with what differs, then `N passed, N failed`. */
export function formatVectorReport({ passed, failures }: VectorReport): string {
  const cases = failures.map(({ file, name, template, differences }) => {
    const indented = differences.map((difference) => difference.replaceAll(/^/gm, '    '))
    return [`✗ ${file} › ${name} (${template})`, ...indented, ''].join('\n')
  })
  return [...cases, `${passed} passed, ${failures.length} failed`].join('\n')
}
