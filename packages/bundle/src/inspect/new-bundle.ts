import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'

import { ConfigError } from '@tiltyard/core'

import type { Manifest } from '../load/manifest.ts'
import type { TaskInput } from '../task.ts'

/**
 * Writes a first bundle that loads, checks and trains: prices to look up and tell.
 * @returns the names of the files that were written.
 * @throws ConfigError when the folder isn't empty, or its name can't be a bundle's.
 */
export async function newBundle(folder: string): Promise<readonly string[]> {
  const name = basename(resolve(folder))
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(name))
    throw refuse(
      folder,
      `"${name}" can't name a bundle; use lower-case letters, digits, "-", "_" and "."`,
    )
  await mkdir(folder, { recursive: true })
  if ((await readdir(folder)).length > 0) throw refuse(folder, 'the folder is not empty')
  const files = filesOf(name)
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text)
  return Object.keys(files)
}

function refuse(folder: string, message: string): ConfigError {
  return new ConfigError('new bundle', [{ at: folder, message }])
}

const goods =
  'apple bread candle drum egg fan glove hat ink jar kite lamp mug nail oil pen quilt rope soap tape umbrella vase whisk yarn'

function filesOf(name: string): Readonly<Record<string, string>> {
  const prices = Object.fromEntries(
    goods.split(' ').map((good, index) => [good, 3 + ((index * 37) % 90)]),
  )
  const manifest: Manifest = {
    formatVersion: 1,
    name,
    version: '0.1.0',
    description: 'Look up a price and tell it.',
    module: 'bundle.ts',
    tasks: ['tasks.jsonl'],
    universe: { kind: 'json', base: 'universe.json' },
    system: 'system.md',
    steps: [
      { name: 'told', use: 'replyContains' },
      { name: 'asked', use: 'askedOnce' },
    ],
    reward: { product: ['told', 'asked'] },
    evals: {
      train: { where: { tags: ['train'] } },
      test: { where: { tags: ['test'] } },
    },
  }
  const tasks = Object.entries(prices).map(([good, price], index) => priceTask(good, price, index))
  return {
    'bundle.json': `${JSON.stringify(manifest, undefined, 2)}\n`,
    'bundle.ts': moduleText,
    // An ES module: as CommonJS its TypeScript would lose its lines where it is loaded.
    'package.json': `${JSON.stringify({ private: true, type: 'module' }, undefined, 2)}\n`,
    'system.md': 'You know the prices of a shop. Look a price up, then tell it.\n',
    'universe.json': `${JSON.stringify({ prices }, undefined, 2)}\n`,
    'tasks.jsonl': tasks.map((task) => `${JSON.stringify(task)}\n`).join(''),
    'README.md': readme(name),
  }
}

function priceTask(good: string, price: number, index: number): TaskInput {
  return {
    id: `price-of-${good}`,
    turns: [{ prompt: index % 2 === 0 ? `What does the ${good} cost?` : `Price of the ${good}?` }],
    gold: {
      calls: [{ name: 'get_price', arguments: { good } }],
      replies: [`It costs ${price}.`],
    },
    expect: { reply: [`costs ${price}.`] },
    tags: [index % 4 === 3 ? 'test' : 'train'],
  }
}

const moduleText = `import type { BundleModule, ToolContext, VerifierContext } from '@tiltyard/bundle'

interface Shop {
  readonly prices: Readonly<Record<string, number>>
}

export const bundle = {
  tools: [
    {
      name: 'get_price',
      description: 'Price of a good.',
      parameters: {
        type: 'object',
        properties: { good: { type: 'string' } },
        required: ['good'],
      },
      // A tool reads the episode's universe and changes it with universe.update. What it throws, the model reads.
      run({ good }: { readonly good: string }, { universe }: ToolContext<Shop>) {
        const price = universe.state.prices[good]
        if (price === undefined) throw new Error(\`no good is called "\${good}"\`)
        return price
      },
    },
  ],
  verifiers: {
    // A verifier looks at the ended episode and gives a score: true is 1, false is 0.
    askedOnce: ({ calls }: VerifierContext<Shop>) =>
      calls.length === 1 && calls[0]?.error === undefined,
  },
} satisfies BundleModule<Shop>
`

function readme(name: string): string {
  return `# ${name}

A bundle: tasks, the tools to do them with, and verifiers that score what was done.

| File            | What                                                                         |
| --------------- | ---------------------------------------------------------------------------- |
| \`bundle.json\`   | the manifest: names everything below, the scoring steps, the reward, the evals |
| \`tasks.jsonl\`   | one task a line: prompts, gold, what is expected                               |
| \`bundle.ts\`     | tools and verifiers                                                            |
| \`universe.json\` | the world that the tools act on, fresh for every episode                       |
| \`system.md\`     | the system prompt                                                              |

Check it, see what its gold does, play it yourself:

\`\`\`sh
npx tiltyard bundle check .
npx tiltyard bundle gold . --task price-of-apple
npx tiltyard play . --task price-of-apple
\`\`\`
`
}
