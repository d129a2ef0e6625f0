import { expect, test } from 'vitest'

import { indexOver, memoryBlobs, type MemoryBlobs } from './support/memory-blobs.ts'
import { episode, metrics, runRecord, step } from './support/small-run.ts'

const text = ({ content }: MemoryBlobs, name: string) => String(content.get(`one/${name}`))

async function write(blobs: MemoryBlobs, steps: readonly number[], resumeAfterStep?: number) {
  const index = indexOver(blobs)
  const writer = await index.claim(
    runRecord(),
    resumeAfterStep === undefined ? { expect: 'new' } : { expect: 'resume', resumeAfterStep },
  )
  for (const number of steps) {
    await writer.append(episode({ step: number }))
    await writer.append({ ...metrics(number), split: 'eval', evaluation: 'smoke' })
    await writer.append(metrics(number))
    await writer.append(step(number))
    await writer.flush()
  }
  await writer.close()
}

test('metrics and times are files for people, a line for each event', async () => {
  const blobs = memoryBlobs(true)
  await write(blobs, [0, 1])
  expect(text(blobs, 'metrics.jsonl').split('\n')).toEqual([
    '{"split":"eval","evaluation":"smoke","step":0,"loss":1,"kl":null}',
    '{"split":"train","step":0,"loss":1,"kl":null}',
    '{"split":"eval","evaluation":"smoke","step":1,"loss":0.5,"kl":null}',
    '{"split":"train","step":1,"loss":0.5,"kl":null}',
    '',
  ])
  expect(text(blobs, 'timing.jsonl')).toContain('{"split":"train","step":1,"step:ms":1}\n')
  expect(JSON.parse(text(blobs, 'run.json'))).toEqual(runRecord())
})

test('a run that was interrupted and resumed has the metrics file of one that was not', async () => {
  const [whole, resumed] = [memoryBlobs(true), memoryBlobs(true)]
  await write(whole, [0, 1, 2, 3])
  await write(resumed, [0, 1, 2])
  await write(resumed, [2, 3], 1)
  expect(text(resumed, 'metrics.jsonl')).toBe(text(whole, 'metrics.jsonl'))
})

test('what a crash left out of the files is there after a resume', async () => {
  const blobs = memoryBlobs(true)
  await write(blobs, [0, 1])
  const whole = text(blobs, 'metrics.jsonl')
  blobs.content.set('one/metrics.jsonl', Buffer.from(whole.slice(0, 100)))
  await write(blobs, [], 1)
  expect(text(blobs, 'metrics.jsonl')).toBe(whole)
})

test('a metric whose name a line needs for itself is refused', async () => {
  const writer = await indexOver(memoryBlobs(true)).claim(runRecord(), { expect: 'new' })
  const event = { ...metrics(0), values: { step: 3 } }
  await expect(writer.append(event)).rejects.toThrow('a metric can\'t be called "step"; rename it')
})
