import { ConfigError, type Dataset } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { interleave, listDataset } from '../../src/index.ts'
import { letterTasks } from '../support/letters.ts'

const list = (letters: string, more: Partial<Parameters<typeof listDataset>[0]> = {}) =>
  listDataset({
    name: letters,
    tasks: letterTasks(letters, 2),
    groupsPerBatch: 2,
    epochs: 1,
    ...more,
  })

const ids = (plans: readonly { readonly task: { readonly id: string } }[] | undefined) =>
  plans?.map(({ task }) => task.id).join('')

describe('a list of tasks', () => {
  test('each pass takes each task once, the last batch with what is left', async () => {
    const dataset = list('abcde', { epochs: 2 })
    expect(dataset.batches).toBe(6)
    const batches = await Promise.all([0, 1, 2, 3, 4, 5].map((step) => dataset.batch(step, 1)))
    expect(batches.map((batch) => batch!.length)).toEqual([2, 2, 1, 2, 2, 1])
    const passes = [batches.slice(0, 3), batches.slice(3)].map((pass) =>
      pass.map(ids).join('').split('').toSorted().join(''),
    )
    expect(passes).toEqual(['abcde', 'abcde'])
    expect(await dataset.batch(6, 1)).toBeUndefined()
    expect(dataset.position(4)).toEqual({ epoch: 1, index: 2 })
  })

  test('step and seed decide, and nothing else', async () => {
    const dataset = list('abcdefg', { groupsPerBatch: 7 })
    const [first, again, other] = await Promise.all([1, 1, 2].map((seed) => dataset.batch(0, seed)))
    expect(first).toEqual(again)
    expect(ids(first)).not.toBe(ids(other))
    expect(first!.map(({ seed }) => seed)).not.toEqual(other!.map(({ seed }) => seed))
  })

  test('without epochs it has no end; unshuffled it keeps its order', async () => {
    const { epochs: _, ...options } = {
      epochs: 1,
      name: 'x',
      tasks: letterTasks('abc', 2),
      groupsPerBatch: 2,
    }
    const endless = listDataset({ ...options, shuffle: false })
    expect(endless.batches).toBeUndefined()
    expect(ids(await endless.batch(1_000, 0))).toBe('ab')
    expect(ids(await endless.batch(1_001, 0))).toBe('c')
  })

  test('its fingerprint tells other tasks and other batches apart', () => {
    const fingerprints = [
      list('abc'),
      list('abd'),
      list('abc', { groupsPerBatch: 3 }),
      list('abc', { shuffle: false }),
    ]
    expect(new Set(fingerprints.map(({ fingerprint }) => fingerprint)).size).toBe(4)
    expect(list('abc').fingerprint).toBe(list('abc').fingerprint)
  })

  test('no tasks and odd numbers are refused by name', () => {
    expect(() => list('')).toThrow('there are no tasks')
    expect(() => list('a', { groupsPerBatch: 0 })).toThrow('groupsPerBatch')
    expect(() => list('a', { epochs: 1.5 })).toThrow('epochs')
  })
})

const mixOf = (sources: Parameters<typeof interleave>[0]['sources']) =>
  interleave({ name: 'mix', sources, groupsPerBatch: 1 })

const letters = (count: number, first: string) =>
  Array.from({ length: count }, (_, index) =>
    String.fromCharCode(first.charCodeAt(0) + index),
  ).join('')

const read = async (from: Dataset, seed: number) => {
  const batches = await Promise.all([4, 2, 0, 1, 3].map((step) => from.batch(step, seed)))
  return batches.map((batch) => batch!.map((plan) => `${plan.task.id} ${plan.seed}`))
}

const mixed = () =>
  interleave({
    name: 'mix',
    sources: [{ dataset: list(letters(10, 'a')) }, { dataset: list(letters(20, 'A')) }],
    groupsPerBatch: 4,
  })

describe('interleaved datasets', () => {
  test('statement 98: sources of 10 and 20 groups, 4 in a batch, make 5 batches of 4, the same for the same seed', async () => {
    const dataset = await mixed()
    expect(dataset.batches).toBe(5)
    const batches = await read(dataset, 3)
    expect(batches.map(({ length }) => length)).toEqual([4, 4, 4, 4, 4])
    expect(await read(await mixed(), 3)).toEqual(batches)
    expect(await read(await mixed(), 4)).not.toEqual(batches)
    expect(await dataset.batch(5, 3)).toBeUndefined()
  })

  test('a source gives each of its groups once before it gives one again', async () => {
    const dataset = await interleave({
      name: 'mix',
      sources: [{ dataset: list('abc') }, { dataset: list('xyz'), weight: 2 }],
      groupsPerBatch: 6,
      batches: 20,
    })
    const batches = await Promise.all(
      Array.from({ length: 20 }, (_, step) => dataset.batch(step, 5)),
    )
    const drawn = batches.flatMap((batch) => batch!.map(({ task }) => task.id))
    const ofX = drawn.filter((id) => id >= 'x')
    const passes = Array.from({ length: Math.floor(ofX.length / 3) }, (_, pass) =>
      ofX
        .slice(3 * pass, 3 * pass + 3)
        .toSorted()
        .join(''),
    )
    expect(new Set(passes)).toEqual(new Set(['xyz']))
    expect(ofX.length / drawn.length).toBeGreaterThan(0.55)
    expect(ofX.length / drawn.length).toBeLessThan(0.78)
  })

  test('a source without end, an odd weight, an odd number and no source at all are refused', async () => {
    const endless = listDataset({ name: 'endless', tasks: letterTasks('a', 1), groupsPerBatch: 1 })
    await expect(mixOf([{ dataset: endless }])).rejects.toThrow('endless has no groups, or no end')
    await expect(mixOf([{ dataset: list('a'), weight: 0 }])).rejects.toThrow(
      'expected more than 0, got 0',
    )
    await expect(mixOf([])).rejects.toThrow(ConfigError)
    const sources = [{ dataset: list('ab') }]
    await expect(interleave({ name: 'mix', sources, groupsPerBatch: 0 })).rejects.toThrow(
      'groupsPerBatch: expected a whole number of at least 1, got 0',
    )
    await expect(
      interleave({ name: 'mix', sources, groupsPerBatch: 1, batches: 1.5 }),
    ).rejects.toThrow('batches: expected a whole number of at least 1, got 1.5')
  })
})
