import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { localBackend } from '@tiltyard/backend-local'
import { bundleDataset } from '@tiltyard/bundle'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { memoryRunIndex } from '@tiltyard/testkit'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining, train } from '@tiltyard/train'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { deskDemonstrations } from '../../../apps/trainer/bundles/desk/demonstrations.ts'
import { describeWith, fromEnvironment } from '../../support/machine.ts'
import { nanoShape } from '../../support/nano.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-identify-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

describeWith(
  fromEnvironment('TILTYARD_TAU2_DATA'),
  'the main job on the retail customers',
  (data) => {
    test('warms up, trains a step, and is evaluated on customers that were never trained', async () => {
      const tokenizer = await loadTokenizer(deskTokenizerFile)
      const identify = await bundleDataset(
        fileURLToPath(new URL('../../../apps/retail/bundles/identify', import.meta.url)),
        {
          train: 'train',
          test: 'test',
          testTasks: 6,
          groupSize: 2,
          groupsPerBatch: 2,
          load: { data },
        },
      )
      const demonstrations = await deskDemonstrations({
        bundle: identify.bundle,
        seed: 1,
        count: 32,
      })
      const backend = localBackend({
        models: {
          nano: {
            shape: {
              vocabularySize: tokenizer.vocabularySize,
              ...nanoShape,
            },
          },
        },
        folder,
        tokenizer,
        threads: 1,
      })
      const losses: number[] = []
      const run = train(
        defineTraining({
          run: 'identify',
          index: memoryRunIndex(),
          backend,
          model: 'nano',
          adaptation: 'full',
          renderer: qwenRenderer({ layout: 'qwen3_5', tokenizer, thinking: false }),
          dataset: identify.train,
          evaluations: [{ name: 'held-out', dataset: identify.test }],
          steps: 1,
          limits: { replyTokens: 16, replies: 2 },
          keepConstantGroups: true,
          optimizer: { learningRate: 1e-3 },
          warmStart: {
            examples: demonstrations.map((conversation) => ({ conversation })),
            order: 'listed',
            batchSize: 8,
            optimizer: { learningRate: 3e-3 },
            evalEvery: 0,
          },
        }),
        {
          observer(event) {
            if (event.type === 'warm_start') losses.push(event.report.values['train_mean_nll']!)
          },
        },
      )
      const { end, evaluations } = await run.finish()
      await backend.close()
      expect(end).toBe('completed')
      expect(losses).toHaveLength(4)
      expect(losses.at(-1)).toBeLessThan(losses[0]!)
      expect(evaluations.map(({ name, values }) => [name, values['groups/played']])).toEqual([
        ['held-out', 6],
      ])
    })
  },
)
