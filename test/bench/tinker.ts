/**
 * What our client costs beside the official SDK doing the same, against a stub in a process of its own: sending a batch of 1,024
 * sequences of 8,192 tokens, and 1,000 samples of 512 tokens at the same time. Seconds, processor time and peak memory, and ratios.
 *
 *   node --import tsx test/bench/tinker.ts [--sequences 1024] [--samples 1000] [--sdk 0.38.0]
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

import { prepare, sdk } from '../src/interop/environments.ts'

const run = promisify(execFile)
const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '1024' },
    samples: { type: 'string', default: '1000' },
    sdk: { type: 'string', default: '0.38.0' },
  },
})
const file = (name: string) => fileURLToPath(new URL(`tinker/${name}`, import.meta.url))

interface Cost {
  readonly seconds: number
  readonly cpu: number
  readonly megabytes: number
}

async function costOf(command: string, args: readonly string[]): Promise<Cost> {
  const { stdout } = await run(command, args, {
    env: { ...process.env, TINKER_TELEMETRY: '0' },
    maxBuffer: 1024 * 1024,
  })
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Cost
}

const python = await prepare(sdk(values.sdk))
for (const [job, size, tokens] of [
  ['train', values.sequences, 8_192],
  ['sample', values.samples, 512],
] as const) {
  // A stub for each job, so that none inherits the memory of the one before.
  const stub = spawn(process.execPath, ['--import', 'tsx', file('stub.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [printed] = (await once(stub.stdout, 'data')) as [Buffer]
  const url = printed.toString().trim()
  const ours = await costOf(process.execPath, [file('client.mjs'), url, job, size])
  const theirs = await costOf(python, ['-W', 'ignore', file('client.py'), url, job, size])
  stub.stdin.end()
  const show = ({ seconds, cpu, megabytes }: Cost) =>
    `${seconds.toFixed(2)} s (${((1e9 * seconds) / (Number(size) * tokens)).toFixed(0)} ns a token), ${cpu.toFixed(1)} s of processor, ${megabytes.toFixed(0)} MB`
  console.log(`${job} ${size} × ${tokens}`)
  console.log(`  tiltyard     ${show(ours)}`)
  console.log(`  SDK ${values.sdk}   ${show(theirs)}`)
  console.log(
    `  ratio        ${(theirs.seconds / ours.seconds).toFixed(1)} × faster, ${(theirs.cpu / ours.cpu).toFixed(1)} × less processor, ${(ours.megabytes / theirs.megabytes).toFixed(2)} of the memory`,
  )
}
