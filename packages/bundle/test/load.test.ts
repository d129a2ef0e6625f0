import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { bundleEnv, loadBundle } from '../src/index.ts'
import { type BundleParts, freshFolder, makeBundle, writeBundle } from './support/make-bundle.ts'
import { quiet } from './support/play.ts'

const plainTool = (name: string) => ({ name, parameters: { type: 'object' }, run: () => name })

const fingerprint = async (parts: BundleParts) => (await makeBundle(parts)).fingerprint

describe('a bundle', () => {
  test('loads from its folder alone, by a plain import', async () => {
    const bundle = await loadBundle(await writeBundle({}))
    expect(bundle).toMatchObject({
      name: 'trial',
      clock: Date.UTC(2026, 0, 1),
      parallelCalls: false,
    })
    expect(bundle.tasks.ids).toEqual(['one'])
    expect(bundle.steps.map(({ name }) => name)).toEqual(['always'])
  })

  test('may be without code: tasks, a universe and built-in verifiers', async () => {
    const bundle = await makeBundle({
      manifest: { module: undefined, steps: [{ name: 'told', use: 'replyContains' }] },
      tasks: [{ id: 'one', turns: [{ prompt: 'Say yes.' }], expect: { reply: ['yes'] } }],
    })
    expect(bundle.tools.size).toBe(0)
    expect(bundle.reward?.name).toBe('only step')
  })

  test('B2: ids may be any text', async () => {
    const ids = ['17', '../../etc', 'CON', 'a/b?c#d', '日本', 'A', 'a']
    const bundle = await makeBundle({ tasks: ids.map((id) => ({ id, turns: [{ prompt: 'x' }] })) })
    expect(bundle.tasks.ids).toEqual(ids)
    expect(bundle.tasks.get('17').id).toBe('17')
  })

  test('asking for a task that does not exist names the nearest', async () => {
    const { tasks } = await makeBundle({})
    expect(() => tasks.get('onee')).toThrow('no task "onee"; did you mean "one"?')
    expect(tasks.where('one')).toBe('tasks.jsonl:1')
  })

  test('B3, B4: evals by ids, file and tags, in their order', async () => {
    const bundle = await makeBundle({
      tasks: ['a', 'b', 'c'].map((id, index) => ({
        id,
        turns: [{ prompt: 'x' }],
        tags: index === 1 ? ['s1', 'hard'] : ['s1'],
        meta: { level: index },
      })),
      manifest: {
        evals: {
          listed: { ids: ['c', 'a'] },
          filed: { file: 'evals/f.txt' },
          tagged: { where: { tags: ['s1', 'hard'] } },
          leveled: { where: { meta: { level: 2 } } },
        },
      },
      files: { 'evals/f.txt': 'b\r\na\r\n\n' },
    })
    expect(Object.fromEntries(bundle.evals)).toEqual({
      listed: ['c', 'a'],
      filed: ['b', 'a'],
      tagged: ['b'],
      leveled: ['c'],
    })
  })

  test('the order of the tools is the manifest’s', async () => {
    const module = { tools: ['a', 'b', 'c'].map(plainTool), verifiers: { always: () => 1 } }
    const bundle = await makeBundle({ module, manifest: { tools: ['c', 'a'] } })
    expect([...bundle.tools.keys()]).toEqual(['c', 'a'])
    expect([...(await makeBundle({ module })).tools.keys()]).toEqual(['a', 'b', 'c'])
  })

  test('tasks, universe, system prompt and evals may come from the module, which reads files and outside data', async () => {
    const data = await writeBundle({ files: { 'db.json': '{"users":{"ann":1}}' } })
    const bundle = await makeBundle({
      manifest: { tasks: undefined, universe: undefined, data: 'Get it somewhere.' },
      files: { 'policy.md': 'Be kind.' },
      load: { data },
      module: {
        verifiers: { always: () => 1 },
        universe: ({ data: outside }) => outside.readJson('db.json') as never,
        system: ({ readText }) => readText('policy.md'),
        tasks: () => [{ id: 'made', turns: [{ prompt: 'x' }] }],
        evals: () => ({ test: ['made'] }),
      },
    })
    expect(bundle.universe.open([]).state).toEqual({ users: { ann: 1 } })
    expect(bundle.system).toBe('Be kind.')
    expect(bundle.tasks.ids).toEqual(['made'])
    expect(bundle.evals.get('test')).toEqual(['made'])
  })

  test('a folder of data is found by the variable that the manifest names', async () => {
    const folder = await writeBundle({
      manifest: { data: 'Get it from its authors.', dataVariable: 'SHELF_DATA' },
    })
    const data = await freshFolder()
    await expect(loadBundle(folder, { env: { SHELF_DATA: data } })).resolves.toBeDefined()
    await expect(loadBundle(folder, { env: { OTHER: data } })).rejects.toThrow(
      'a folder of data is needed, and none was given. Get it from its authors.',
    )
  })

  test('tools get the secrets that the manifest names, and no others', async () => {
    let seen: unknown
    const bundle = await makeBundle({
      manifest: { secrets: ['KEY'] },
      load: { env: { KEY: 'k', OTHER: 'o' } },
      module: {
        verifiers: { always: () => 1 },
        tools: [
          {
            name: 'ask',
            parameters: { type: 'object' },
            run: (_: never, { secrets }) => {
              seen = secrets
            },
          },
        ],
      },
    })
    const env = bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1 })
    await env.start(quiet())
    const toolCalls = [{ id: 'a', name: 'ask', arguments: {} }]
    await env.step(
      { role: 'assistant', content: '', toolCalls },
      { signal: quiet(), toolCallsLeft: 1 },
    )
    expect(seen).toEqual({ KEY: 'k' })
  })
})

describe('B8: a bundle’s fingerprint', () => {
  test('is the same for the same content in another folder', async () => {
    expect(await fingerprint({})).toBe(await fingerprint({}))
  })

  test.each<[string, BundleParts]>([
    ['the manifest', { manifest: { description: 'x' } }],
    ['a task', { tasks: [{ id: 'one', turns: [{ prompt: 'Go!' }] }] }],
    ['the universe', { universe: { a: 1 } }],
    ['the module’s file', { files: { 'bundle.mjs': 'export const bundle = {}\n' } }],
    ['a file that the module may import', { files: { 'lib/prices.mjs': 'export const x = 1\n' } }],
    [
      'a tool’s schema',
      {
        module: {
          verifiers: { always: () => 1 },
          tools: [{ name: 'a', parameters: { type: 'object' }, run: () => '' }],
        },
      },
    ],
  ])('changes with %s', async (_, parts) => {
    expect(await fingerprint(parts)).not.toBe(await fingerprint({}))
  })

  test('changes with the outside data that was read', async () => {
    const reading: BundleParts = {
      manifest: { universe: undefined, data: 'x' },
      module: {
        verifiers: { always: () => 1 },
        universe: ({ data }) => data.readJson('db.json'),
      },
    }
    const folders = await Promise.all(
      ['{"a":1}', '{"a":2}'].map((text) => writeBundle({ files: { 'db.json': text } })),
    )
    const [one, two] = await Promise.all(
      folders.map((data) => fingerprint({ ...reading, load: { data } })),
    )
    expect(one).not.toBe(two)
  })

  test('does not change with what does not decide how a task plays', async () => {
    const folder = await writeBundle({})
    const { fingerprint: before } = await loadBundle(folder)
    for (const path of [
      'README.md',
      'LICENSE',
      '.gitignore',
      'test/a.test.ts',
      'node_modules/x/y.js',
    ]) {
      await mkdir(join(folder, path, '..'), { recursive: true })
      await writeFile(join(folder, path), 'x')
    }
    expect((await loadBundle(folder)).fingerprint).toBe(before)
  })
})
