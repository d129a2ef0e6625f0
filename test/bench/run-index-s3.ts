/**
 * How fast the run index in a bucket appends and answers, and what it asks of the store. Starts a Ceph object gateway on this
 * machine (Debian: radosgw ceph-mon ceph-osd ceph-common).
 *
 *     pnpm tsx --conditions=@tiltyard/source test/bench/run-index-s3.ts [--episodes <n>] [--steps <n>]
 */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'

import { s3RunIndex } from '@tiltyard/run-index-s3'

import { startRadosgw } from '../src/run-index-s3/radosgw.ts'
import { report } from './run-index/measure.ts'
import { appendRun, readRun } from './run-index/workload.ts'

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '50000' },
    steps: { type: 'string', default: '100' },
  },
})
const size = {
  episodes: Number(values.episodes),
  steps: Number(values.steps),
  flushEachStep: true,
}

report('machine', `${cpus().length} × ${cpus()[0]?.model ?? '?'}, Node ${process.version}`)
const server = await startRadosgw()
try {
  const requests = new Map<string, number>()
  const index = s3RunIndex({
    endpoint: server.endpoint,
    bucket: server.bucket,
    credentials: server.credentials,
    onRequest: ({ method }) => requests.set(method, (requests.get(method) ?? 0) + 1),
  })
  const spent = () => {
    const text = [...requests].map(([method, count]) => `${count} ${method}`).join(', ')
    requests.clear()
    return `  (${text})`
  }
  await appendRun(index, 'bench', size)
  report('requests of the append', spent())
  await readRun(index, 'bench', size, spent)
} finally {
  await server.stop()
}
