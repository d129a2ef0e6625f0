/**
 * What bundles cost: universes of a database of about 1.2 MB opened, written to and compared; and episodes per second of gold
 * replays, each with its start, its calls, its end and its scores. Other work on the machine lowers what it prints: take the best.
 *
 *   node --expose-gc --import tsx --conditions=@tiltyard/source test/bench/bundle.ts [--bundle <folder>] [--data <folder>] [--rounds 3]
 */
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { goldPlayer, jsonUniverse, loadBundle, playTask } from '@tiltyard/bundle'
import { randomStream, type JsonObject } from '@tiltyard/core'

const desk = fileURLToPath(new URL('../../apps/trainer/bundles/desk', import.meta.url))
const { values } = parseArgs({
  options: {
    bundle: { type: 'string', default: desk },
    data: { type: 'string' },
    rounds: { type: 'string', default: '3' },
  },
})
const rounds = Number(values.rounds)
const UNIVERSES = 10_000

console.log(
  `${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores, Node ${process.versions.node}`,
)
universes()
await replays()

/** Orders of some 600 bytes each, about 1.2 MB of JSON in all. */
function store(): JsonObject {
  const random = randomStream(1, 'bench', 'store')
  const order = (index: number): JsonObject => ({
    user: `user_${random.integer(500)}`,
    status: 'pending',
    items: Array.from({ length: 4 }, (_, item) => ({
      id: `item_${index}_${item}`,
      price: random.integer(100_000) / 100,
      options: { color: 'blue', size: 'large', material: 'cotton', fit: 'regular' },
    })),
  })
  return {
    orders: Object.fromEntries(
      Array.from({ length: 2_200 }, (_, index) => [`W${index}`, order(index)]),
    ),
  }
}

function universes(): void {
  const base = store()
  const bytes = JSON.stringify(base).length
  const source = jsonUniverse(base)
  const heap = heapUsed()
  const opened = timed(() => Array.from({ length: UNIVERSES }, () => source.open([])))
  const untouched = (heapUsed() - heap) / UNIVERSES
  const written = timed(() => {
    for (const [index, state] of opened.result.entries()) {
      const { universe, release } = state.handle()
      universe.update((draft) => {
        const { orders } = draft as unknown as { orders: Record<string, { status: string }> }
        orders[`W${index % 2_200}`]!.status = 'cancelled'
      })
      release()
    }
  })
  const touched = (heapUsed() - heap) / UNIVERSES
  const compared = timed(() =>
    opened.result.reduce((sum, state) => sum + state.changes().length, 0),
  )
  const micro = (ms: number) => `${((ms * 1_000) / UNIVERSES).toFixed(1)} µs`
  console.log(`universe of ${(bytes / 1e6).toFixed(2)} MB, ${UNIVERSES} of them, each:`)
  console.log(`  open ${micro(opened.ms)}, ${Math.round(untouched)} bytes`)
  console.log(`  one write ${micro(written.ms)}, ${Math.round(touched)} bytes`)
  console.log(`  list its changes ${micro(compared.ms)} (${compared.result} in all)`)
}

async function replays(): Promise<void> {
  const began = performance.now()
  const bundle = await loadBundle(
    values.bundle,
    values.data === undefined ? {} : { data: values.data },
  )
  console.log(
    `bundle ${bundle.name}, ${bundle.tasks.ids.length} tasks, loaded in ${(performance.now() - began).toFixed(0)} ms`,
  )
  for (let round = 0; round < rounds; round += 1) {
    let calls = 0
    const start = performance.now()
    const cpuBefore = process.cpuUsage()
    for (const id of bundle.tasks.ids) {
      const play = await playTask(bundle, id, goldPlayer(bundle.tasks.get(id)))
      calls += play.calls.length
    }
    const seconds = (performance.now() - start) / 1_000
    const { user, system } = process.cpuUsage(cpuBefore)
    const perCpuSecond = (bundle.tasks.ids.length / (user + system)) * 1e6
    const episodes = bundle.tasks.ids.length
    console.log(
      `  gold replays: ${(episodes / seconds).toFixed(0)} episodes/s, ${(calls / seconds).toFixed(0)} calls/s; ${perCpuSecond.toFixed(0)} episodes per CPU second`,
    )
  }
  console.log(`  heap ${(heapUsed() / 1e6).toFixed(0)} MB`)
}

function heapUsed(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

function timed<Result>(work: () => Result): { readonly result: Result; readonly ms: number } {
  const start = performance.now()
  const result = work()
  return { result, ms: performance.now() - start }
}
