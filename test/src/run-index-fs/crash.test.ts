import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { randomStream, type RunIndex } from '@tiltyard/core'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { afterAll, beforeAll, expect, test } from 'vitest'

const RUNS = 4
const KILLS_PER_RUN = 26

const programs = {
  endless: fileURLToPath(new URL('endless-writer.mjs', import.meta.url)),
  halfWay: fileURLToPath(new URL('half-way-writer.mjs', import.meta.url)),
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-crash-'))
})
afterAll(() => rm(folder, { recursive: true }))

test(`of writers killed ${RUNS * KILLS_PER_RUN} times all that was acknowledged survives`, async () => {
  const index = fsRunIndex({ folder })
  const faults: string[] = []
  // Two at a time: as many as there are cores.
  for (let run = 0; run < RUNS; run += 2) {
    const pair = [run, run + 1].map((number) => crashAgainAndAgain(index, `run-${number}`))
    faults.push(...(await Promise.all(pair)).flat())
  }
  expect(faults).toEqual([])
})

test('F59: of a run killed in its fifth episode four are whole, one is seen by its journal, and it is interrupted', async () => {
  await outputUntilKilled(programs.halfWay, 'half-way', 0)
  const index = fsRunIndex({ folder })
  expect((await index.run('half-way')).summary.status).toBe('interrupted')
  const ends = new Map<number, string | undefined>()
  for await (const { key, end } of index.episodes('half-way')) ends.set(key.member, end?.kind)
  expect([0, 1, 2, 3, 4].map((member) => ends.get(member))).toEqual([
    ...Array<string>(4).fill('completed'),
    undefined,
  ])
  const key = { split: 'train', step: 0, group: 0, member: 4, attempt: 0 } as const
  const { episode, journal, damage } = await index.episode('half-way', key)
  expect([episode, damage]).toEqual([undefined, undefined])
  expect(journal.flatMap(({ messages }) => messages)).toEqual([
    { role: 'assistant', content: 'reply 0' },
    { role: 'assistant', content: 'reply 1' },
  ])
})

/** Resolves with what broke a promise. */
async function crashAgainAndAgain(index: RunIndex, run: string): Promise<readonly string[]> {
  const random = randomStream(1, run)
  const faults: string[] = []
  for (let kill = 1; kill <= KILLS_PER_RUN; kill += 1) {
    const lines = await outputUntilKilled(programs.endless, run, random.integer(60))
    const [epoch, episodes] = (lines.at(-1) ?? '').split(' ').map(Number)
    if (epoch !== kill || episodes === undefined) {
      faults.push(`${run}: writer ${kill} did not get the run at once`)
      continue
    }
    const { status } = (await index.run(run)).summary
    if (status !== 'interrupted') faults.push(`${run}: ${status} after kill ${kill}`)
    faults.push(...(await lostEpisodes(index, run, epoch, episodes)))
  }
  // Reads every record that a line points to.
  for await (const { where, what } of index.upkeep?.check(run) ?? [])
    if (!what.startsWith('torn end of ')) faults.push(`${where}: ${what}`)
  return faults
}

async function lostEpisodes(
  index: RunIndex,
  run: string,
  epoch: number,
  acknowledged: number,
): Promise<readonly string[]> {
  const rewards = new Map<number, unknown>()
  for await (const { key, reward } of index.episodes(run, { step: epoch }))
    rewards.set(key.member, reward)
  const members = Array.from({ length: acknowledged }, (_, member) => member)
  const faults = members
    .filter((member) => JSON.stringify(rewards.get(member)) !== `{"reward":${member}}`)
    .map((member) => `${run}: episode ${member} of writer ${epoch} was acknowledged and is lost`)
  const last = acknowledged - 1
  const key = { split: 'train', step: epoch, group: 0, member: last, attempt: 0 } as const
  const { episode } = await index.episode(run, key)
  if (episode?.seed !== last) faults.push(`${run}: episode ${last} can't be read`)
  return faults
}

/** Starts a writer, waits until it has acknowledged something and then so many milliseconds, kills it. */
async function outputUntilKilled(
  program: string,
  run: string,
  milliseconds: number,
): Promise<readonly string[]> {
  const child = spawn(process.execPath, [program, folder, run], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = new Promise((resolve) => child.once('close', resolve))
  let output = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('\n')) resolve()
    })
    child.once('close', () => reject(new Error('the writer ended by itself')))
  })
  await sleep(milliseconds)
  child.kill('SIGKILL')
  await closed
  // A line that the kill cut short acknowledges nothing.
  return output.split('\n').slice(0, -1)
}
