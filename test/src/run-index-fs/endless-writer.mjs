// Appends episodes to a run until it is killed: `node endless-writer.mjs <folder> <run>`. Tells what was acknowledged,
// a line after each flush: `<epoch> <episodes>`.
import { writeSync } from 'node:fs'

import { fsRunIndex } from '@tiltyard/run-index-fs'

const [folder, name] = process.argv.slice(2)
const record = {
  version: 1,
  name,
  startedAt: 1_764_000_000_000,
  seed: 1,
  config: {},
  fingerprints: {},
  versions: {},
}
const index = fsRunIndex({ folder })
const writer = await index
  .claim(record, { expect: 'resume' })
  .catch(() => index.claim(record, { expect: 'new' }))

/** From a few bytes to half a megabyte, so that a kill meets writes of every size. */
const text = (member) => `${member} `.repeat(1 + ((member * 7_919) % 17) ** 4)

for (let member = 0; ; member += 1) {
  const key = { split: 'train', step: writer.epoch, group: 0, member, attempt: 0 }
  await writer.append({
    type: 'episode',
    key,
    task: 'crash',
    fingerprint: 'f',
    seed: member,
    startedAt: 1_764_000_000_000,
    ms: 1,
    end: { kind: 'completed' },
    messages: [{ role: 'user', content: text(member) }],
    tools: [],
    calls: [],
    replies: [],
    sequences: [],
  })
  await writer.append({
    type: 'score',
    key,
    scores: { answer: { value: member } },
    metrics: {},
    reward: { reward: member },
  })
  if (member % 3 !== 2) continue
  await writer.append({ type: 'step', step: member, position: member, totals: {} })
  await writer.flush()
  writeSync(1, `${writer.epoch} ${member + 1}\n`)
}
