import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Bundle, checkBundle, expectScore, loadBundle } from '../src/index.ts'

/** Inside the package, so that the module's imports are found. */
const parent = join(import.meta.dirname, 'temp')
let folder: string
let readme: string
const files = new Map<string, string>()
let bundle: Bundle

beforeAll(async () => {
  await mkdir(parent, { recursive: true })
  folder = await mkdtemp(join(parent, 'readme-'))
  readme = await readFile(join(import.meta.dirname, '../README.md'), 'utf8')
  for (const [, name, text] of readme.matchAll(/```\w+ file=(\S+)\n([\s\S]*?)```/g)) {
    const source = text!.replace("'@tiltyard/bundle'", "'../../../src/index.ts'")
    files.set(name!, source)
    await writeFile(join(folder, name!), source)
  }
  bundle = await loadBundle(folder)
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

test('the bundle of the README loads, and its author would find nothing to mend', async () => {
  expect(bundle.tasks.ids).toEqual(['emma', 'ulysses'])
  expect((await checkBundle(bundle, { fullReward: 1.2 })).findings).toEqual([])
})

test('its mistakes are shown as the README shows them', async () => {
  const broken = await mkdtemp(join(parent, 'readme-'))
  const manifest = files.get('bundle.json')!.replace('"use": "polite"', '"use": "polit"')
  const [emma, ulysses] = files.get('tasks.jsonl')!.split('\n')
  const tasks = [emma, ulysses!.replace('gold', 'golds'), emma].join('\n')
  for (const [name, text] of [...files, ['bundle.json', manifest], ['tasks.jsonl', tasks]] as const)
    await writeFile(join(broken, name), text)
  const error: unknown = await loadBundle(broken).catch((reason: unknown) => reason)
  await rm(broken, { recursive: true })
  const shown = String(error).replace(broken, 'library').replaceAll(/ +$/gm, '')
  expect(readme).toContain(shown)
})

test('its verifiers score as the README says', async () => {
  const lend = { name: 'lend', arguments: { book: 'Emma', to: 'Ann' } }
  const good = { shelf: 1, polite: 1 }
  const bad = { shelf: 0, polite: 0 }
  await expect(expectScore(bundle, 'emma', [lend, 'Here you are.'], good)).resolves.toBeDefined()
  await expect(expectScore(bundle, 'emma', ['There is no such book.'], bad)).resolves.toBeDefined()
})
