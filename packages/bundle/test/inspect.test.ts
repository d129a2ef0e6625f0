import { join } from 'node:path'

import { textOf } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import {
  authorFailure,
  type BundleModule,
  bundleDataset,
  checkBundle,
  defineTool,
  expectScore,
  goldReport,
  loadBundle,
  newBundle,
  type ToolContext,
  type ToolDefinition,
  ToolError,
} from '../src/index.ts'
import { type BundleParts, freshFolder, makeBundle, writeBundle } from './support/make-bundle.ts'

interface Shelf {
  readonly books: readonly string[]
  readonly loans: number
}

const lend = defineTool<Shelf, z.ZodObject<{ book: z.ZodString }>>({
  name: 'lend',
  description: 'Lends a book.',
  parameters: z.object({ book: z.string() }),
  run: ({ book }, { universe }) => {
    if (!universe.state.books.includes(book)) throw new ToolError(`no book "${book}"`)
    universe.update((draft) => {
      draft.books = draft.books.filter((title) => title !== book)
      draft.loans += 1
    })
  },
})

const library: BundleParts<Shelf> = {
  universe: { books: ['Emma', 'Ulysses'], loans: 0 },
  module: { tools: [lend], verifiers: {} },
  manifest: { steps: [{ name: 'shelf', use: 'universeEqualsGold' }] },
}

const lends = (...books: readonly string[]) => ({
  calls: books.map((book) => ({ name: 'lend', arguments: { book } })),
})
const task = (id: string, ...books: readonly string[]) => ({
  id,
  turns: [{ prompt: 'x' }],
  gold: lends(...books),
})

describe('checkBundle', () => {
  test('finds nothing in a bundle that is right', async () => {
    const bundle = await makeBundle({ ...library, tasks: [task('a', 'Emma')] })
    expect(await checkBundle(bundle)).toEqual({
      bundle: 'trial',
      fingerprint: bundle.fingerprint,
      tasks: 1,
      withoutGold: 0,
      evals: {},
      findings: [],
    })
  })

  test('F29: tasks where doing nothing earns the full reward, and gold calls that fail', async () => {
    const bundle = await makeBundle({
      ...library,
      tasks: [task('a', 'Emma'), task('noop'), task('broken', 'Dune')],
    })
    const { findings } = await checkBundle(bundle)
    expect(findings).toEqual([
      { kind: 'no-op', at: 'tasks.jsonl:2', task: 'noop', message: 'doing nothing earns 1' },
      { kind: 'no-op', at: 'tasks.jsonl:3', task: 'broken', message: 'doing nothing earns 1' },
      {
        kind: 'gold-call-fails',
        at: 'tasks.jsonl:3',
        task: 'broken',
        message: 'the gold call lend gives an error: no book "Dune"',
      },
    ])
  })

  test('gold that earns less than the full reward', async () => {
    const bundle = await makeBundle({
      ...library,
      manifest: { steps: [{ name: 'told', use: 'replyContains' }] },
      tasks: [{ ...task('a', 'Emma'), expect: { reply: ['lent'] } }],
    })
    expect((await checkBundle(bundle)).findings).toMatchObject([
      { kind: 'gold-earns-less', task: 'a', message: 'the gold earns 0, of 1' },
    ])
  })

  test('F28: gold that ends elsewhere when it is replayed', async () => {
    const stamp = defineTool({
      name: 'stamp',
      description: 'Stamps.',
      parameters: z.object({}),
      run: (_, { universe }: ToolContext) => {
        universe.update((draft) => {
          ;(draft as unknown as { at: number }).at = Date.now()
        })
      },
    })
    const bundle = await makeBundle({
      module: { tools: [stamp], verifiers: { always: () => 1 } },
      tasks: [
        { id: 'a', turns: [{ prompt: 'x' }], gold: { calls: [{ name: 'stamp', arguments: {} }] } },
      ],
    })
    const kinds = (await checkBundle(bundle, { fullReward: 2 })).findings.map(({ kind }) => kind)
    expect(kinds).toContain('gold-differs')
  })

  test('gold whose writes end elsewhere in another order', async () => {
    const set = defineTool({
      name: 'set',
      description: 'Sets.',
      parameters: z.object({ to: z.string() }),
      run: ({ to }, { universe }: ToolContext) => {
        universe.update((draft) => {
          ;(draft as unknown as { value: string }).value = to
        })
      },
    })
    const gold = { calls: ['x', 'y'].map((to) => ({ name: 'set', arguments: { to } })) }
    const bundle = await makeBundle({
      module: { tools: [set], verifiers: { db: () => 1 } },
      manifest: { steps: [{ name: 'db', use: 'universeEqualsGold' }] },
      tasks: [{ id: 'a', turns: [{ prompt: 'x' }], gold }],
    })
    expect((await checkBundle(bundle)).findings).toMatchObject([
      { kind: 'gold-order-matters', task: 'a' },
    ])
    const independent = await makeBundle({ ...library, tasks: [task('b', 'Emma', 'Ulysses')] })
    expect((await checkBundle(independent)).findings).toEqual([])
  })

  test('evals for training and testing that share tasks', async () => {
    const evals = { train: { ids: ['a', 'b'] }, test: { ids: ['b'] }, smoke: { ids: ['a'] } }
    const bundle = await makeBundle({
      ...library,
      manifest: { ...library.manifest, evals },
      tasks: [task('a', 'Emma'), task('b', 'Ulysses')],
    })
    expect((await checkBundle(bundle)).findings).toEqual([
      {
        kind: 'evals-overlap',
        at: 'test',
        message: '"train" and "test" share 1 of 2 tasks, the first is "b"',
      },
    ])
    const { findings } = await checkBundle(bundle, { disjoint: [['train', 'smoke']] })
    expect(findings.map(({ at }) => at)).toEqual(['smoke'])
  })

  test('tools without a description, and parameters without a type', async () => {
    const tool: ToolDefinition = {
      name: 'do',
      parameters: {
        type: 'object',
        properties: { it: { description: 'What.' }, n: { type: 'integer' } },
      },
      run: () => '',
    }
    const bundle = await makeBundle({ module: { tools: [tool], verifiers: { always: () => 0 } } })
    expect((await checkBundle(bundle)).findings.map(({ kind, at }) => [kind, at])).toEqual([
      ['tool-without-description', 'do'],
      ['parameter-without-type', 'do'],
    ])
  })

  test('first prompts that are too long, where tokens can be counted', async () => {
    const bundle = await makeBundle({
      module: { verifiers: { always: () => 0 } },
      tasks: ['x', 'xxxx'].map((prompt) => ({ id: prompt, turns: [{ prompt }] })),
    })
    const { findings, promptTokens } = await checkBundle(bundle, {
      countTokens: ({ messages }) => textOf(messages[0]!.content).length,
      mostPromptTokens: 3,
    })
    expect(promptTokens).toEqual({ least: 1, mean: 2.5, most: 4 })
    expect(findings).toMatchObject([
      { kind: 'prompt-too-long', task: 'xxxx', message: 'the first prompt takes 4 tokens, of 3' },
    ])
  })

  test('a verifier or tool that breaks, with its author’s line', async () => {
    const folder = await writeBundle({
      files: {
        'bundle.mjs': `export const bundle = {
  verifiers: {
    always: ({ answer }) => {
      return answer.words.length
    },
  },
}
`,
      },
    })
    const { findings } = await checkBundle(await loadBundle(folder))
    expect(findings).toMatchObject([
      {
        kind: 'breaks',
        at: 'bundle.mjs:4',
        task: 'one',
        failure: { error: expect.stringMatching(/^TypeError: Cannot read/) as string },
      },
    ])
  })
})

describe('goldReport', () => {
  test('shows what the gold calls give and where the universe differs afterwards', async () => {
    const bundle = await makeBundle({ ...library, tasks: [task('a', 'Emma', 'Dune')] })
    const { calls, changes, failures } = await goldReport(bundle, 'a')
    expect(calls.map(({ result }) => result)).toEqual(['ok', 'error: no book "Dune"'])
    expect(changes).toEqual([
      { path: '/books/0', before: 'Emma', after: 'Ulysses' },
      { path: '/books/1', before: 'Ulysses' },
      { path: '/loans', before: 0, after: 1 },
    ])
    expect(failures).toEqual([])
  })

  test('shows where a tool broke', async () => {
    const folder = await writeBundle({
      files: {
        'bundle.mjs': `const lend = () => {
  throw new RangeError('off the shelf')
}
export const bundle = {
  tools: [{ name: 'lend', description: 'x', parameters: { type: 'object' }, run: lend }],
  verifiers: { always: () => 0 },
}
`,
      },
      tasks: [
        { id: 'a', turns: [{ prompt: 'x' }], gold: { calls: [{ name: 'lend', arguments: {} }] } },
      ],
    })
    const { failures } = await goldReport(await loadBundle(folder), 'a')
    expect(failures).toMatchObject([{ error: 'RangeError: off the shelf', at: 'bundle.mjs:2' }])
  })
})

test('an error that comes from elsewhere has no line of the author’s', () => {
  const failure = authorFailure({ folder: '/nowhere' }, new Error('disk full'))
  expect(failure).toMatchObject({ error: 'Error: disk full' })
  expect(failure.at).toBeUndefined()
})

describe('expectScore', () => {
  const module: BundleModule<Shelf> = {
    ...library.module,
    verifiers: {
      polite: ({ answer }) => ({ value: answer.includes('please') ? 1 : 0, note: 'no please' }),
    },
  }
  const parts: BundleParts<Shelf> = {
    ...library,
    module,
    manifest: {
      steps: [
        { name: 'shelf', use: 'universeEqualsGold' },
        { name: 'polite', use: 'polite' },
      ],
    },
    tasks: [task('a', 'Emma')],
  }
  const lendEmma = { name: 'lend', arguments: { book: 'Emma' } }

  test('passes when the scores are as expected, and gives the play', async () => {
    const bundle = await makeBundle(parts)
    const play = await expectScore(bundle, 'a', [lendEmma, 'Here, please.'], {
      shelf: 1,
      polite: 1,
    })
    expect(play.outcome.end).toEqual({ kind: 'completed' })
    await expectScore(bundle, 'a', [[lendEmma, lendEmma]], { shelf: 1, polite: 0 })
  })

  test('fails with each score beside the expected one, notes, and the calls with their results', async () => {
    const bundle = await makeBundle(parts)
    const transcript = [{ name: 'lend', arguments: { book: 'Dune' } }, 'Sorry.']
    await expect(
      expectScore(bundle, 'a', transcript, { shelf: 1, polite: 1, missing: 1 }),
    ).rejects.toMatchObject({
      code: 'EXPECTED_SCORE',
      message: `task "a"
  shelf: expected 1, got 0
  polite: expected 1, got 0 (no please)
  missing: expected 1, and the task records no such step
  calls:
  lend({"book":"Dune"}) → error: no book "Dune"`,
    })
  })
})

async function emptyFolder() {
  return join(await freshFolder(), 'price-desk')
}

describe('newBundle', () => {
  test('writes a bundle that loads and in which nothing is found', async () => {
    const folder = await emptyFolder()
    expect(await newBundle(folder)).toContain('bundle.json')
    const bundle = await loadBundle(folder)
    expect(bundle.name).toBe('price-desk')
    expect((await checkBundle(bundle)).findings).toEqual([])
    const { train, test: held } = await bundleDataset(bundle, {
      train: 'train',
      test: 'test',
      groupSize: 4,
      groupsPerBatch: 2,
    })
    expect(await train.batch(0, 1)).toHaveLength(2)
    expect(await held.batch(0, 1)).toHaveLength(6)
  })

  test('writes into no folder that holds something, and under no name that a bundle can’t have', async () => {
    const folder = await emptyFolder()
    await newBundle(folder)
    await expect(newBundle(folder)).rejects.toThrow('the folder is not empty')
    await expect(newBundle(join(folder, 'My Bundle'))).rejects.toThrow(
      `"My Bundle" can't name a bundle`,
    )
  })
})
