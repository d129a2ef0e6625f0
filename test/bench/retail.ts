/**
 * Gold replays of the retail bundle: every task 16 times, each an episode with its start, its calls, its end and its scores (the
 * gold carried out again, the stores compared), in two processes. With `--python` and `--checkout`, in the same run the same by the
 * benchmark's own code. Episodes per second of processor time are what other work on the machine disturbs least.
 *
 *   node --import tsx test/bench/retail.ts --data <folder> [--rounds 3]
 *     [--python <interpreter that can import tau2> --checkout <tau2-bench>]
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { type Bundle, goldPlayer, loadBundle, playTask } from '@tiltyard/bundle'
import { isScored } from '@tiltyard/core'

const PROCESSES = 2
const TIMES = 16

/** What a process did in a round. */
interface Played {
  readonly episodes: number
  readonly calls: number
  /** Episodes whose store equals the gold's. */
  readonly right: number
  readonly cpuSeconds: number
  /** Resident memory afterwards. */
  readonly bytes: number
}

if (process.send === undefined) await measure()
else await play(process.argv[2]!, Number(process.argv[3]))

async function measure(): Promise<void> {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: process.env['TILTYARD_TAU2_DATA'] ?? '' },
      rounds: { type: 'string', default: '3' },
      python: { type: 'string' },
      checkout: { type: 'string' },
    },
  })
  console.log(
    `${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores, Node ${process.versions.node}`,
  )
  const file = fileURLToPath(import.meta.url)
  const players = Array.from({ length: PROCESSES }, (_, index) =>
    fork(file, [values.data, String(index)]),
  )
  await Promise.all(players.map(message))
  let best = 0
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const began = performance.now()
    for (const player of players) player.send('go')
    const played = (await Promise.all(players.map(message))) as Played[]
    const seconds = (performance.now() - began) / 1_000
    const sum = (key: keyof Played) => played.reduce((total, it) => total + it[key], 0)
    const perCpuSecond = sum('episodes') / sum('cpuSeconds')
    best = Math.max(best, perCpuSecond)
    console.log(
      `  ${sum('episodes')} episodes, ${sum('calls')} calls, ${sum('right')} right: ${(sum('episodes') / seconds).toFixed(0)} a second, ${perCpuSecond.toFixed(0)} a CPU second; ${(sum('bytes') / PROCESSES / 1e6).toFixed(0)} MB resident each`,
    )
  }
  for (const player of players) player.disconnect()
  console.log(
    `on ${PROCESSES} cores of their own: ${(best * PROCESSES).toFixed(0)} episodes a second`,
  )
  if (values.python !== undefined && values.checkout !== undefined)
    compare(best, values.python, values.checkout)
}

/** The benchmark's own code, on one core. */
function compare(ours: number, python: string, checkout: string): void {
  const script = fileURLToPath(new URL('./retail-tau2.py', import.meta.url))
  const printed = execFileSync(python, [script], {
    encoding: 'utf8',
    env: { ...process.env, PYTHONPATH: `${checkout}/src`, TAU2_DATA_DIR: `${checkout}/data` },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const theirs = JSON.parse(printed) as { readonly episodes: number; readonly cpuSeconds: number }
  const perCpuSecond = theirs.episodes / theirs.cpuSeconds
  console.log(
    `tau2 itself: ${theirs.episodes} episodes, ${perCpuSecond.toFixed(2)} a CPU second; ratio ${(ours / perCpuSecond).toFixed(0)}`,
  )
}

function message(from: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`a process ended with ${code}`))
    from.once('exit', ended)
    from.once('message', (said) => {
      from.off('exit', ended)
      resolve(said)
    })
  })
}

/** Plays every nth episode of a round when it is told to. */
async function play(data: string, first: number): Promise<void> {
  const folder = fileURLToPath(new URL('../../apps/retail', import.meta.url))
  const bundle = await loadBundle(folder, { data })
  process.on('message', () => {
    void replay(bundle, first).then((played) => process.send!(played))
  })
  process.send!('ready')
}

async function replay(bundle: Bundle, first: number): Promise<Played> {
  const { ids } = bundle.tasks
  const before = process.cpuUsage()
  let [episodes, calls, right] = [0, 0, 0]
  for (let index = first; index < ids.length * TIMES; index += PROCESSES) {
    const id = ids[index % ids.length]!
    const { outcome, calls: made } = await playTask(bundle, id, goldPlayer(bundle.tasks.get(id)))
    const store = outcome.scores['store']
    episodes += 1
    calls += made.length
    if (store !== undefined && isScored(store) && store.value === 1) right += 1
  }
  const { user, system } = process.cpuUsage(before)
  const cpuSeconds = (user + system) / 1e6
  return { episodes, calls, right, cpuSeconds, bytes: process.memoryUsage.rss() }
}
