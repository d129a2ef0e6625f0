import { symlink } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { loadBundle } from '../../src/index.ts'
import { makeBundle, writeBundle } from '../support/make-bundle.ts'
import { mistakesOf, type MistakenBundle } from '../support/mistakes.ts'

const bundles: readonly MistakenBundle[] = [
  {
    name: 'B11: a path that leaves the folder',
    parts: { manifest: { system: '../system.md' } },
    mistakes: [
      {
        at: 'bundle.json:18',
        message: `the system prompt can't be read: "../system.md" leaves the folder`,
      },
    ],
  },
  {
    name: 'B11: a path from the root',
    parts: { manifest: { tasks: ['/etc/hosts'] } },
    mistakes: [
      {
        at: 'bundle.json:6',
        message: `the tasks can't be read: "/etc/hosts" leaves the folder`,
      },
    ],
  },
]

describe('loadBundle names, of the folder and its files,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })

  test('B11: a symbolic link', async () => {
    const folder = await writeBundle({})
    await symlink(join(folder, 'tasks.jsonl'), join(folder, 'more.jsonl'))
    expect(await mistakesOf(() => loadBundle(folder))).toEqual([
      {
        at: 'more.jsonl',
        message: 'symbolic links are refused; put the file itself into the bundle',
      },
    ])
  })

  test('a module that throws, at its line', async () => {
    const folder = await writeBundle({ files: { 'bundle.mjs': '\n\nnull.x\n' } })
    const [mistake] = await mistakesOf(() => loadBundle(folder))
    expect(mistake?.at).toBe('bundle.mjs:3')
    expect(mistake?.message).toContain('importing it failed: TypeError')
  })

  test('a module that imports a package that is not there: which, and where to install it', async () => {
    const folder = await writeBundle({
      files: { 'bundle.mjs': "import '@no-such/package/part'\n" },
    })
    // Vitest's own importer words it otherwise than Node.
    const importModule = () =>
      Promise.reject(
        Object.assign(new Error("Cannot find package '@no-such/package' imported from x.mjs"), {
          code: 'ERR_MODULE_NOT_FOUND',
        }),
      )
    expect(await mistakesOf(() => loadBundle(folder, { importModule }))).toEqual([
      {
        at: 'bundle.mjs',
        message:
          'it imports "@no-such/package", which can\'t be found from there; install it in the bundle\'s folder or in one above: npm install @no-such/package',
      },
    ])
  })

  test('a module that exports no bundle', async () => {
    const folder = await writeBundle({ files: { 'bundle.mjs': 'export const bundel = {}\n' } })
    expect(await mistakesOf(() => loadBundle(folder))).toEqual([
      {
        at: 'bundle.mjs',
        message: 'it exports no "bundle"; write `export const bundle = defineBundle({ … })`',
      },
    ])
  })

  test('a folder that does not exist, and one that is no bundle', async () => {
    expect(await mistakesOf(() => loadBundle('/nowhere/at/all'))).toEqual([
      { at: '', message: 'there is no such folder' },
    ])
    const folder = await writeBundle({})
    const [mistake] = await mistakesOf(() => loadBundle(join(folder, '..')))
    expect(mistake?.message).toContain('it has no bundle.json')
  })
})
