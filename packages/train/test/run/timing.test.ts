import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { letterDataset, letterSource } from '../support/letters.ts'
import { newPlace, pass, trainThere } from '../support/runs.ts'

test('F19: the most episodes that were live at once is recorded with the run, those of evaluations among them', async () => {
  const place = newPlace()
  let live = 0
  let most = 0
  const source = letterSource({
    async onOpen() {
      live += 1
      most = Math.max(most, live)
      await new Promise(setImmediate)
      live -= 1
    },
  })
  const evaluations = [{ name: 'held', dataset: letterDataset({ source, epochs: 1 }) }]
  await trainThere(place, {
    dataset: letterDataset({ source, epochs: 1, size: 5 }),
    evaluations,
    evalEvery: 1,
    rollout: { slots: 3 },
  })
  const { metrics } = await place.index.run('letters')
  const peaks = metrics.flatMap(({ split, timing }) =>
    split === 'train' ? [timing['slots/peak']] : [],
  )
  expect(most).toBe(3)
  expect(peaks).toEqual([3, 3])
})

test('F21: what comes after the end of its episode is counted', async () => {
  const place = newPlace()
  const clock = simulatedClock()
  let answer = () => {}
  const late = new Promise<void>((resolve) => {
    answer = resolve
  })
  let opened = 0
  const source = letterSource({
    async onOpen() {
      opened += 1
      if (opened > 1) return
      void pass(clock, 100_000)
      await late
    },
  })
  const { reports } = await trainThere(
    place,
    {
      dataset: letterDataset({ source, epochs: 1 }),
      rollout: { waits: { openMs: 50_000 }, failures: { kind: 'retry', retries: 1 } },
    },
    {
      clock,
      observer(event) {
        if (event.type === 'rollout' && event.event.type === 'failure') answer()
      },
    },
  )
  const { metrics } = await place.index.run('letters')
  const ignored = metrics.map(({ timing }) => timing['late/ignored'] ?? 0)
  expect(ignored.reduce((sum, count) => sum + count, 0)).toBe(1)
  expect(reports.map(({ timing }) => timing['late/ignored'])).toEqual(ignored)
})

test('F41: the seconds of a run add up over its parts', async () => {
  const place = newPlace()
  const part = async (steps: number, seconds: number) => {
    const clock = simulatedClock()
    const source = letterSource({ onOpen: () => clock.sleep(seconds * 1_000) })
    const dataset = letterDataset({ source, epochs: 2 })
    const start = steps === 1 ? 'new' : 'resume'
    const { reports } = await clock.drive(
      trainThere(place, { dataset, steps }, { clock, start, takeOver: true }),
    )
    return reports.map(({ timing }) => Number(timing['time/total']))
  }
  const [first] = await part(1, 40)
  const [second, ...others] = await part(2, 20)
  expect(others).toEqual([])
  expect([first! >= 40, second! >= 20]).toEqual([true, true])
  const { steps } = await place.index.run('letters')
  expect(steps.map(({ totals }) => totals['seconds'])).toEqual([first, first! + second!])
})
