import assert from 'node:assert/strict'

import type { Env, Episode, TaskRef, TaskSource } from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { refused } from './expect.ts'

export interface TaskSourceCasesOptions {
  /** A fresh source for each case; two of them hold the same tasks. */
  readonly create: () => Promise<TaskSource>
  /** A split that has at least one task. Default `all`. */
  readonly split?: string
}

const everything = { tools: true, images: true, changedHead: true }

/** What every TaskSource promises: a fixed order, stable fingerprints, fresh plays, errors that name what exists. */
export function taskSourceCases({
  create,
  split = 'all',
}: TaskSourceCasesOptions): readonly ConformanceCase[] {
  const cases: readonly {
    readonly name: string
    readonly use: (source: TaskSource) => Promise<void>
  }[] = [
    {
      name: 'it gives its tasks in the same order every time, with distinct ids',
      use: async (source) => {
        const first = await listed(source, split)
        assert.ok(first.length > 0, `there is no task in "${split}"`)
        assert.deepEqual(await listed(source, split), first)
        assert.equal(new Set(first.map(({ id }) => id)).size, first.length)
      },
    },
    {
      name: 'another source of the same tasks has the same fingerprints',
      use: async (source) => {
        const other = await create()
        assert.equal(other.fingerprint, source.fingerprint)
        assert.deepEqual(await listed(other, split), await listed(source, split))
        await other.close()
      },
    },
    {
      name: 'different tasks have different fingerprints',
      use: async (source) => {
        const tasks = await listed(source, split)
        assert.equal(new Set(tasks.map(({ fingerprint }) => fingerprint)).size, tasks.length)
      },
    },
    {
      name: 'a split that does not exist is an error that says which do',
      use: async (source) => {
        const error = await refused(
          () => listed(source, 'no-such-split-anywhere'),
          ['NOT_FOUND'],
          'an unknown split',
        )
        assert.match(error.message, /\ball\b/)
      },
    },
    {
      name: 'it can be prepared for a player that lacks nothing, and then opens a fresh play each time',
      use: async (source) => {
        await source.prepare(everything, new AbortController().signal)
        const [task] = await listed(source, split)
        const plays = await Promise.all([opened(source, task!), opened(source, task!)])
        assert.notEqual(plays[0], plays[1])
        assert.equal(plays[0].instance, plays[1].instance)
        for (const play of plays) {
          await play.end({ kind: 'cancelled' })
          await play.close()
        }
      },
    },
    {
      name: 'it can be closed twice, and opens nothing afterwards',
      use: async (source) => {
        const [task] = await listed(source, split)
        await source.close()
        await source.close()
        await refused(() => opened(source, task!), ['STATE'], 'opening after close')
      },
    },
  ]
  return cases.map(({ name, use }) => ({
    name,
    run: async () => {
      const source = await create()
      try {
        await use(source)
      } finally {
        await source.close()
      }
    },
  }))
}

async function listed(source: TaskSource, split: string): Promise<readonly TaskRef[]> {
  const tasks: TaskRef[] = []
  for await (const task of source.tasks(split)) tasks.push(task)
  return tasks
}

function opened(source: TaskSource, task: TaskRef): Promise<Env | Episode> {
  return source.open(task, { seed: 1, signal: new AbortController().signal })
}
