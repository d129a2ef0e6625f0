// Plays four of eight episodes and half of the fifth, tells so with a line and hangs: `node half-way-writer.mjs <folder> <run>`.
import { writeSync } from 'node:fs'

import { fsRunIndex } from '@tiltyard/run-index-fs'

const [folder, name] = process.argv.slice(2)
const record = {
  version: 1,
  name,
  startedAt: 1,
  seed: 1,
  config: {},
  fingerprints: {},
  versions: {},
}
const writer = await fsRunIndex({ folder }).claim(record, { expect: 'new' })

const key = (member) => ({ split: 'train', step: 0, group: 0, member, attempt: 0 })
const play = { task: 'crash', fingerprint: 'f', startedAt: 1 }
for (let member = 0; member < 4; member += 1) {
  await writer.append({
    type: 'episode',
    key: key(member),
    ...play,
    seed: member,
    ms: 1,
    end: { kind: 'completed' },
    messages: [{ role: 'user', content: `episode ${member}` }],
    tools: [],
    calls: [],
    replies: [],
    sequences: [],
  })
}
for (const reply of [0, 1]) {
  await writer.append({
    type: 'call',
    key: key(4),
    ...play,
    reply,
    messages: [{ role: 'assistant', content: `reply ${reply}` }],
  })
}
await writer.flush()
// Never acknowledged: this one may be lost.
await writer.append({ type: 'call', key: key(5), ...play, reply: 0, messages: [] })
writeSync(1, 'half-way\n')
setInterval(() => {}, 1_000)
