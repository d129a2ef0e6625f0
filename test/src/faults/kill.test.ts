import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { episodeId, randomStream } from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** Kills in all; each at a random moment of a life. */
const KILLS = 50
const program = fileURLToPath(new URL('trainer.ts', import.meta.url))
const RUNS = ['small-warm-start', 'small']

const folders: string[] = []
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tiltyard-faults-'))
  folders.push(folder)
  return folder
}

/** When a life ends: so many milliseconds after one of its lines, counted from 1. */
interface Death {
  readonly line: number
  readonly milliseconds: number
}

interface Life {
  /** Lines that the trainer wrote: what it was told is durable. */
  readonly lines: readonly string[]
  readonly ended: 'killed' | 'done'
}

/** A life of the trainer, ended with SIGKILL unless it came to its end before. */
async function live(folder: string, death?: Death): Promise<Life> {
  const moment = death === undefined ? [] : [death.line, death.milliseconds].map(String)
  const child = spawn(process.execPath, ['--import', 'tsx', program, folder, ...moment], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (more: string) => (complaint += more))
  child.stdout.setEncoding('utf8').on('data', (more: string) => (text += more))
  const [code, signal] = await closeOf(child)
  if (signal === null && code !== 0) throw new Error(`the trainer ended with ${code}: ${complaint}`)
  // The last line of a killed process may be half of one.
  const lines = text.split('\n').slice(0, -1)
  return { lines, ended: signal === null ? 'done' : 'killed' }
}

async function closeOf(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  return (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
}

/** What must be equal: the metrics as they lie in the run's folder, and the final weights and optimizer. */
function results(folder: string, life: Life) {
  const checkpoint = life.lines.at(-1)!.replace('done ', '')
  const files = ['model.safetensors', 'optimizer.safetensors']
  return {
    metrics: RUNS.map((run) => readFileSync(join(folder, 'runs', run, 'metrics.jsonl'), 'utf8')),
    weights: files.map((file) =>
      readFileSync(join(folder, 'checkpoints', 'training', checkpoint, file)).toString('base64'),
    ),
  }
}

/** Episodes of the run as a reader sees them: id, and whether it trained. */
async function episodesIn(folder: string) {
  const index = fsRunIndex({ folder: join(folder, 'runs') })
  const episodes: { readonly id: string; readonly step: number; readonly trained: unknown }[] = []
  for await (const { key, trained } of index.episodes('small', { split: 'train' }))
    episodes.push({ id: episodeId(key), step: key.step, trained })
  await index.close()
  return episodes
}

interface Survivor {
  readonly folder: string
  readonly lives: readonly Life[]
}

const killsOf = ({ lives }: Survivor) => lives.filter((life) => life.ended === 'killed')

/** Beginnings at a step that an earlier line had announced as done. */
function stepsBack(lives: readonly Life[]): readonly string[] {
  let announced = -1
  return lives
    .flatMap(({ lines }) => lines)
    .filter((line) => {
      const [what, number] = line.split(' ')
      if (what === 'step') announced = Number(number)
      return what === 'begin' && Number(number) <= announced
    })
}

describe(`a trainer that is killed at ${KILLS} random moments`, () => {
  let whole: ReturnType<typeof results>
  let wholeEpisodes: Awaited<ReturnType<typeof episodesIn>>
  const survivors: Survivor[] = []

  beforeAll(async () => {
    const undisturbed = newFolder()
    const life = await live(undisturbed)
    whole = results(undisturbed, life)
    wholeEpisodes = await episodesIn(undisturbed)
    // Two at a time, as there are cores; each draws its own moments: half of them at a line, half some time later.
    const workers = [0, 1].map(async (worker) => {
      for (let kills = 0, number = 0; kills < KILLS / 2; number += 1) {
        const random = randomStream(worker, `kills of ${number}`)
        const draw = (): Death => ({
          line: 1 + random.integer(life.lines.length - 1),
          milliseconds: random.next() < 0.5 ? 0 : Math.ceil(40 * random.next()),
        })
        const lives: Life[] = []
        const survivor = { folder: newFolder(), lives }
        survivors.push(survivor)
        do lives.push(await live(survivor.folder, draw()))
        while (lives.at(-1)!.ended === 'killed')
        kills += lives.length - 1
      }
    })
    await Promise.all(workers)
  })

  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  test('comes to the same metrics, byte for byte', () => {
    for (const { folder, lives } of survivors)
      expect(results(folder, lives.at(-1)!).metrics).toEqual(whole.metrics)
  })

  test('comes to the same weights and optimizer, byte for byte', () => {
    for (const { folder, lives } of survivors)
      expect(results(folder, lives.at(-1)!).weights).toEqual(whole.weights)
  })

  test('has every episode once, those of every step that it announced in any life', async () => {
    for (const { folder } of survivors) {
      const episodes = await episodesIn(folder)
      expect(episodes).toEqual(wholeEpisodes)
      expect(new Set(episodes.map(({ id }) => id)).size).toBe(episodes.length)
    }
  })

  test('never goes back behind a step that it announced', () => {
    expect(survivors.flatMap(({ lives }) => stepsBack(lives))).toEqual([])
  })

  test('was killed in the warm start and in the training', () => {
    const killed = survivors.flatMap(killsOf)
    expect(killed.length).toBeGreaterThanOrEqual(KILLS)
    const inWarmStart = killed.filter(({ lines }) => lines.at(-1)?.startsWith('warm') === true)
    const inTraining = killed.filter(({ lines }) => lines.at(-1)?.startsWith('step') === true)
    expect(inWarmStart.length).toBeGreaterThan(0)
    expect(inTraining.length).toBeGreaterThan(0)
  })
})
