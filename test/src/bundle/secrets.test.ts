/** F65: one place takes a bundle's secrets out; this looks for them in every place where words of an episode end up. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { bundleDataset, loadBundle } from '@tiltyard/bundle'
import { RECORD_VERSION, type SampleRequest } from '@tiltyard/core'
import { createSlots, playGroup, rolloutMetrics } from '@tiltyard/rollout'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { charRenderer, charText, scriptedSampler } from '@tiltyard/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { textBelow } from '../../support/files.ts'

const KEY = 'SENTINEL-key-of-the-service'

const moduleText = `
const tool = (name, run) => ({ name, fatal: name === 'explode', parameters: { type: 'object' }, run })
export const bundle = {
  tools: [
    tool('read', (_, { secrets }) => 'x'.repeat(1_000_000) + secrets.KEY),
    tool('fail', (_, { secrets }) => { throw new Error('401 for ' + secrets.KEY) }),
    tool('explode', (_, { secrets }) => { throw new Error('403 for ' + secrets.KEY) }),
  ],
  verifiers: { quoted: ({ calls }) => ({ value: 1, note: calls.at(-1).result.slice(-200) }) },
}
`

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-secrets-'))
  const manifest = {
    formatVersion: 1,
    name: 'service',
    module: 'bundle.mjs',
    tasks: ['tasks.jsonl'],
    secrets: ['KEY'],
    limits: { toolOutputChars: 200, toolOutputKeep: 'tail' },
    steps: [{ name: 'quoted', use: 'quoted' }],
    reward: 'quoted',
  }
  await writeFile(join(folder, 'bundle.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'bundle.mjs'), moduleText)
  const task = { id: 'one', turns: [{ prompt: 'Go.' }] }
  await writeFile(join(folder, 'tasks.jsonl'), `${JSON.stringify(task)}\n`)
})
afterEach(() => rm(folder, { recursive: true }))

test('F65: a tool result of 1 MB with a secret at its end, and errors that tell it, leave it nowhere', async () => {
  const heard: unknown[] = []
  const hear = (...said: readonly unknown[]) => void heard.push(said)
  const logger = { debug: hear, info: hear, warn: hear, error: hear }
  const { train, source } = await bundleDataset(await loadBundle(folder, { env: { KEY } }), {
    train: 'all',
    groupSize: 1,
    groupsPerBatch: 1,
    log: logger,
    onToolError: (error) => hear((error as Error).stack),
  })
  const runs = join(folder, 'runs')
  const index = fsRunIndex({ folder: runs, logger })
  const record = {
    version: RECORD_VERSION,
    name: 'run',
    startedAt: 0,
    seed: 1,
    config: {},
    fingerprints: {},
    versions: {},
  } as const
  const writer = await index.claim(record, { expect: 'new' })
  const [plan] = (await train.batch(0, 1)) ?? []
  for (const [step, calls] of [['⟦read {}⟧⟦fail {}⟧', 'Read.'], ['⟦explode {}⟧']].entries()) {
    const sampler = scriptedSampler(calls)
    const group = await playGroup(
      plan!,
      { split: 'train', step, group: 0 },
      {
        policy: { sampler, renderer: charRenderer(), sampling: {} },
        slots: createSlots(1),
        seed: 1,
        failures: { kind: 'retry', retries: 0 },
        writer,
        logger,
        observer: (event) => hear(event),
      },
    )
    hear(group, rolloutMetrics([group]), sampler.requests.map(promptText))
  }
  await writer.close()
  await source.close()

  const said = JSON.stringify(heard, (_, value: unknown) =>
    value instanceof Error ? [value.message, value.stack, value.cause] : value,
  )
  expect(said).toContain('x[secret]⟨end⟩')
  expect(said).toContain('403 for [secret]')
  expect(said).not.toContain('SENTINEL')
  const written = await textBelow(runs)
  expect(written).toContain('[secret]')
  expect(written).toContain('x'.repeat(1_000_000))
  expect(written).not.toContain('SENTINEL')
})

/** What the model was shown. */
function promptText({ prompt }: SampleRequest): string {
  return prompt
    .chunks()
    .map((chunk) => (chunk.type === 'tokens' ? charText(chunk.ids) : ''))
    .join('')
}
