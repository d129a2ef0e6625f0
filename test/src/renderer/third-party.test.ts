import { cp, mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { checkVectors, formatVectorReport, type RendererFactory } from '@tiltyard/testkit'
import { loadTokenizer } from '@tiltyard/tokenizer'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'

import { describeWith } from '../../support/machine.ts'
import { runOk } from '../../support/run.ts'
import { vocabulary } from '../../support/vocabularies.ts'
import { root } from '../../support/workspace.ts'

const source = join(root, 'test/third-party-renderer')
const tarballs = inject('tarballs')

describe('a renderer that a third party wrote', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tiltyard-third-party-'))
    await cp(source, folder, { recursive: true, filter: (file) => !file.includes('node_modules') })
    const needed = ['@tiltyard/core', '@tiltyard/testkit'].map((name) => tarballs[name]!)
    const catalog = await readFile(join(root, 'pnpm-workspace.yaml'), 'utf8')
    const pinned = ['zod', '@types/node'].map((name) => {
      return `${name}@${new RegExp(`^  '?${name}'?: (.+)$`, 'm').exec(catalog)![1]}`
    })
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--no-save']
    await runOk('npm', ['install', ...options, ...needed, ...pinned], { cwd: folder })
    await runOk(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], { cwd: folder })
  })
  afterAll(async () => {
    await rm(folder, { recursive: true })
  })

  test('needs core, testkit and zod, and nothing else of ours', async () => {
    expect((await readdir(join(folder, 'node_modules/@tiltyard'))).toSorted()).toEqual([
      'core',
      'testkit',
    ])
  })

  test('passes the public cases and the vectors of its template, under another test runner', async () => {
    const report = await runOk(process.execPath, ['--test', 'dist/test/'], { cwd: folder })
    expect(report).toMatch(/^# fail 0$/m)
    expect(Number(/^# pass (\d+)$/m.exec(report)?.[1])).toBeGreaterThan(20)
    expect(Number(/^# skipped (\d+)$/m.exec(report)?.[1])).toBe(3)
  })

  describeWith(vocabulary('llama3_1'), 'with the model’s own vocabulary', (file) => {
    test('gives the ids of the vectors', async () => {
      const module = (await import(pathToFileURL(join(folder, 'dist/src/index.js')).href)) as {
        readonly fromTemplate: RendererFactory
      }
      const json: unknown = JSON.parse(
        await readFile(join(source, 'vectors/llama3_1.json'), 'utf8'),
      )
      const report = checkVectors({
        files: [{ name: 'llama3_1', json }],
        renderer: module.fromTemplate,
        tokenizer: await loadTokenizer(file),
      })
      expect(formatVectorReport(report)).toBe('5 passed, 0 failed')
    })
  })
})
