import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { fsRunIndex } from '@tiltyard/run-index-fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { describeWith, program } from '../../support/machine.ts'
import { run } from '../../support/run.ts'

const at = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const tiltyard = at('apps/trainer/dist/cli.js')
const dist = (name: string) => JSON.stringify(at(`packages/${name}/dist/index.js`))
const MINUTES = 60_000

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-bad-input-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** A recipe of the small training with changes, as the text of an object. */
async function recipe(changes = '{}', before = ''): Promise<string> {
  const file = join(folder, 'recipe.mts')
  await writeFile(
    file,
    `import { bundleDataset } from ${dist('bundle')}
import { localBackend } from ${dist('backend-local')}
import { loadTokenizer } from ${dist('tokenizer')}
import { defineTraining, listDataset } from ${dist('train')}
import { smallTraining } from ${JSON.stringify(at('test/src/faults/world.ts'))}
const { warmStart, evaluations, ...config } = smallTraining(${JSON.stringify(folder)}).config
${before}
export const training = defineTraining({ ...config, steps: 2, ...${changes} })
`,
  )
  return file
}
const train = async (file: string, ...more: readonly string[]) =>
  run(process.execPath, [tiltyard, 'train', file, ...more], { cwd: folder })
const runs = () => fsRunIndex({ folder: join(folder, 'runs') })

describe('what a person hears of a mistake, and the exit code', { timeout: 10 * MINUTES }, () => {
  test('unknown keys of a recipe: each with its place and the nearest right one', async () => {
    const { code, stderr } = await train(
      await recipe('{ stepz: 3, limits: { replyTokenz: 2 }, checkpoints: { evry: 1 } }'),
    )
    expect(stderr).toContain('unknown key "stepz"; did you mean "steps"?')
    expect(stderr).toContain('limits: unknown key "replyTokenz"; did you mean "replyTokens"?')
    expect(stderr).toContain('checkpoints: unknown key "evry"; did you mean "every"?')
    expect(code).toBe(2)
  })

  test('a recipe that throws: what it threw, once', async () => {
    const { code, stderr } = await train(await recipe('{}', "throw new Error('no such dataset')"))
    expect(stderr).toContain('recipe.mts: it threw while it was loaded: no such dataset')
    expect(stderr.match(/no such dataset/g)).toHaveLength(1)
    expect(code).toBe(2)
  })

  test('await at the top of a recipe that is no ES module: what to do', async () => {
    const file = join(folder, 'recipe.ts')
    await writeFile(file, 'export const training = await Promise.resolve(1)\n')
    const { code, stderr } = await train(file)
    expect(stderr).toContain('name it with the ending .mts, or put "type": "module"')
    expect(code).toBe(2)
  })

  test('a bundle that names a tool which is missing, and a task twice: both, with their places', async () => {
    const bundle = join(folder, 'bundle')
    await mkdir(bundle)
    const manifest = {
      formatVersion: 1,
      name: 'wrong',
      module: 'bundle.mjs',
      tasks: ['tasks.jsonl'],
      tools: ['nowhere'],
      steps: [{ name: 'told', use: 'replyContains' }],
      reward: 'told',
    }
    await writeFile(join(bundle, 'bundle.json'), JSON.stringify(manifest))
    const module = `import { forUniverse } from ${dist('bundle')}
      export const bundle = forUniverse().defineBundle({})`
    await writeFile(join(bundle, 'bundle.mjs'), module)
    const task = { id: 'one', turns: [{ prompt: 'Hello' }] }
    await writeFile(join(bundle, 'tasks.jsonl'), `${JSON.stringify(task)}\n`.repeat(2))
    const options = "{ train: 'all', groupSize: 2, groupsPerBatch: 1 }"
    const { code, stderr } = await train(
      await recipe('{}', `await bundleDataset(${JSON.stringify(bundle)}, ${options})`),
    )
    expect(stderr).toContain('bundle.json:1: unknown tool "nowhere"')
    expect(stderr).toContain('tasks.jsonl:2: task "one" is there already, at tasks.jsonl:1')
    expect(code).toBe(2)
  })

  test('a task longer than the context: the steps are skipped, and the warning says which task and limit', async () => {
    const { code, stdout } = await train(
      await recipe(
        "{ dataset: listDataset({ name: 'long', tasks: [{ ...plan, size: 2, task: { id, fingerprint: id } }], groupsPerBatch: 1 }) }",
        "const [plan] = await config.dataset.batch(0, 0)\nconst id = 'a'.repeat(40)",
      ),
    )
    expect(stdout).toMatch(
      /warning: 2 of 2 episodes were cut \(context_window\) before their first reply, for instance of task a{40};/,
    )
    expect(stdout).toContain('nothing to train in this step')
    expect(code).toBe(0)
  })

  test('F47: a service at a closed port: that it is tried again, at once, and in the end what to check', async () => {
    const file = await recipe(
      "{ backend: tinkerBackend({ baseUrl: 'http://127.0.0.1:9', apiKey: 'k', deadlines: { retries: 2_000 } }), model: 'bigram', adaptation: { rank: 4 } }",
      `const { tinkerBackend } = await import(${dist('backend-tinker')})\nawait config.backend.close()`,
    )
    const { code, stdout, stderr } = await train(file)
    expect(stdout.match(/warning: trying again to ask the service/g)).toHaveLength(1)
    expect(stderr).toContain('127.0.0.1:9 gave no answer')
    expect(stderr).toContain('check the base address and the network')
    expect(code).toBe(1)
  })

  test('a second trainer on the same run: it is refused, with how to take over', async () => {
    const file = await recipe()
    expect((await train(file)).code).toBe(0)
    const index = runs()
    const { record } = await index.run('small')
    const first = await index.claim(record, { expect: 'resume' })
    const { code, stderr } = await train(file, '--resume', '--run', 'small', '--steps', '3')
    expect(stderr).toMatch(/run "small" is being written by another process: .*take the run over/)
    expect(code).toBe(1)
    await first.close()
    expect((await train(file, '--resume', '--run', 'small', '--steps', '3')).code).toBe(0)
  })

  test('a checkpoint of another shape: the tensors with both shapes, and nothing is changed', async () => {
    expect((await train(await recipe())).code).toBe(0)
    const wider = `{ backend: localBackend({ models: { tiny: { shape: {
      vocabularySize: 8, width: 24, layers: 1, heads: 2, kvHeads: 1, headSize: 8, hidden: 32, contextWindow: 32,
    } } }, folder: ${JSON.stringify(join(folder, 'checkpoints'))}, threads: 1 }) }`
    const { code, stderr } = await train(
      await recipe(wider, 'await config.backend.close()'),
      '--resume',
      '--run',
      'small',
      '--steps',
      '3',
    )
    expect(stderr).toContain('checkpoint of another shape')
    expect(stderr).toContain("tensor model.embed_tokens.weight is [8, 16], the model's is [8, 24]")
    expect(code).toBe(2)
    expect((await train(await recipe(), '--resume', '--run', 'small', '--steps', '3')).code).toBe(0)
  })

  test.each([
    ['{"model": {"type": "BPE"', 'tokenizer.json: is no JSON; is the download complete?'],
    ['{"model": {"type": "Unheard"}}', 'is no plain byte-level BPE (a model of type Unheard)'],
  ])('a broken tokenizer file, %j: what is wrong with it', async (text, fault) => {
    const file = join(folder, 'tokenizer.json')
    await writeFile(file, text)
    const { code, stderr } = await train(
      await recipe('{}', `await loadTokenizer(${JSON.stringify(file)})`),
    )
    expect(stderr).toContain(fault)
    expect(code).toBe(2)
  })

  test('a Node that is too old: which one it needs, before any package is loaded', async () => {
    const app = at('apps/trainer')
    // Here there are none to load.
    await cp(join(app, 'dist'), join(folder, 'dist'), { recursive: true })
    await copyFile(join(app, 'package.json'), join(folder, 'package.json'))
    const old = join(folder, 'old.cjs')
    await writeFile(
      old,
      "Object.defineProperty(process, 'versions', { value: { node: '20.18.3' } })",
    )
    const { code, stderr, stdout } = await run(
      process.execPath,
      ['--require', old, join(folder, 'dist/cli.js'), '--help'],
      {
        cwd: folder,
      },
    )
    expect(stderr).toContain('tiltyard needs Node 20.19 or newer; this is Node 20.18.3.')
    expect([code, stdout]).toEqual([2, ''])
  })
})

// A file system of its own, small or read-only, for one command.
describeWith(program('bwrap'), 'a disk that takes nothing', (bwrap) => {
  const shell = async (mount: readonly string[], script: string) =>
    run(bwrap, ['--dev-bind', '/', '/', ...mount, '--', 'sh', '-c', script], { cwd: folder })

  test(
    'a full disk ends the run with what to do; with room again it goes on to its end',
    async () => {
      const file = await recipe('{ steps: 8 }')
      const small = ['--bind', file, file]
      const command = `"${process.execPath}" "${tiltyard}" train "${file}"`
      // The folder is empty there, but for the recipe; the filler leaves room for a few steps.
      const { code, stdout, stderr } = await shell(
        ['--size', String(3 << 20), '--tmpfs', folder, ...small],
        `head -c ${2800 << 10} /dev/zero > "${folder}/filler"
        ${command}; echo "first: $?"
        rm "${folder}/filler"
        ${command} --resume; echo "second: $?"`,
      )
      expect(stderr).toMatch(/the disk is full; (free some space|make room), then go on/)
      expect(stdout).toContain('first: 1')
      expect(stdout).toContain('second: 0')
      expect(stdout).toContain('step 8/8')
      expect(code).toBe(0)
    },
    10 * MINUTES,
  )

  test(
    'a read-only folder ends the run before anything is played, and is called so',
    async () => {
      const file = await recipe()
      const { code, stdout, stderr } = await shell(
        ['--ro-bind', folder, folder],
        `"${process.execPath}" "${tiltyard}" train "${file}"`,
      )
      expect(stderr).toContain('the file system is read-only; choose another folder')
      expect(stdout).not.toContain('step 1')
      expect(code).toBe(1)
    },
    10 * MINUTES,
  )
})
