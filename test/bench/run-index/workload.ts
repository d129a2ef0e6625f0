import { setTimeout as sleep } from 'node:timers/promises'

import { RECORD_VERSION, type EpisodeFilter, type RunIndex, type RunWriter } from '@tiltyard/core'

import { count, medianOf, megabytes, report, taken, takenBy, threadMs } from './measure.ts'
import { smallEpisode } from './small-episodes.ts'

export interface Size {
  readonly episodes: number
  /** Steps: groups of runs in the record. */
  readonly steps: number
  /** Whether each step becomes durable before the next begins, as when a trainer records. Else batches go as they fill. */
  readonly flushEachStep?: boolean
}

const MEMBERS = 8

/** Appends a run of so many episodes; batches become durable as they fill. Reports rate and memory. */
export async function appendRun(index: RunIndex, run: string, size: Size): Promise<void> {
  const perStep = Math.ceil(size.episodes / size.steps)
  const writer = await index.claim(
    {
      version: RECORD_VERSION,
      name: run,
      startedAt: 1_764_000_000_000,
      seed: 1,
      config: {},
      fingerprints: {},
      versions: {},
    },
    { expect: 'new' },
  )
  const heaps: number[] = []
  const began = performance.now()
  const cpu = process.cpuUsage()
  const thread = threadMs()
  for (let step = 0; step < size.steps; step += 1) {
    await appendStep(writer, step, perStep)
    if (size.flushEachStep === true) await writer.flush()
    if (step % Math.ceil(size.steps / 10) === 0) heaps.push(await settledMemory())
  }
  await writer.flush()
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  const threadTime = ((threadMs() - thread) * 1_000) / size.episodes
  await writer.append({ type: 'end', status: 'completed', step: size.steps - 1, at: 1 })
  await writer.close()
  const rate = Math.round(size.episodes / seconds)
  report(`append, ${size.episodes} episodes in ${size.steps} steps`, `${rate} episodes/s`)
  report(
    'processor time, compression included',
    `${((user + system) / size.episodes).toFixed(0)} µs per episode, ${threadTime.toFixed(0)} of them on the main thread`,
  )
  report('resident memory at each tenth of the run', heaps.map(megabytes).join(', '))
}

async function appendStep(writer: RunWriter, step: number, episodes: number): Promise<void> {
  for (let at = 0; at < episodes; at += 1) {
    const key = {
      split: 'train',
      step,
      group: Math.floor(at / MEMBERS),
      member: at % MEMBERS,
      attempt: 0,
    } as const
    for (const event of smallEpisode(key, step * episodes + at)) await writer.append(event)
  }
  const values = Object.fromEntries(
    Array.from({ length: 40 }, (_, metric) => [`metric/${metric}:mean`, step / (metric + 1)]),
  )
  await writer.append({ type: 'metrics', split: 'train', step, values, timing: { 'step:ms': 1 } })
  await writer.append({ type: 'step', step, position: step, totals: { episodes } })
}

async function settledMemory(): Promise<number> {
  globalThis.gc?.()
  await sleep(0)
  return process.memoryUsage.rss()
}

/** Reports what the questions of a reader cost; `spent` tells of what else an answer took, requests for instance. */
export async function readRun(
  index: RunIndex,
  run: string,
  { steps }: Size,
  spent: () => string = () => '',
): Promise<void> {
  const middle = Math.floor(steps / 2)
  const key = { split: 'train', step: middle, group: 2, member: 3, attempt: 0 } as const
  const questions: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['list of runs', () => count(index.runs())],
    ['overview of the run', () => index.run(run)],
    ['one step: its episodes', () => count(index.episodes(run, { step: middle }))],
    ['one step: its groups', () => count(index.groups(run, { step: middle }))],
    ['one episode', () => index.episode(run, key)],
    [
      'one step: by task',
      () => count(index.episodes(run, { step: middle, task: 'find-customer-7' })),
    ],
    ['one step: by reward', () => count(index.episodes(run, { step: middle, minReward: 1 }))],
    ['all steps: by a task that none has', () => count(index.episodes(run, { task: 'none' }))],
    ['all steps: by an end that none has', () => count(index.episodes(run, { end: 'replies' }))],
  ]
  for (const [what, ask] of questions) {
    spent()
    const first = await ask()
    const cost = spent()
    const times = await medianOf(5, ask)
    report(what, `${taken(times)}${cost}${typeof first === 'number' ? `  (${first} found)` : ''}`)
  }
  const throughAll: readonly (readonly [string, EpisodeFilter])[] = [
    ['all steps: by an end that few have', { end: 'turns' }],
    ['all steps: by a task that each step has', { task: 'find-customer-7' }],
  ]
  for (const [what, filter] of throughAll) {
    spent()
    let found = 0
    const times = await takenBy(async () => {
      found = await count(index.episodes(run, filter))
    })
    report(what, `${taken(times)}${spent()}  (${found} found)`)
  }
}
