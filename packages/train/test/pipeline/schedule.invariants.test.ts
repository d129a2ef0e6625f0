import { randomStream, type RandomStream } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { beforeAll, describe, expect, test } from 'vitest'

import { refKey, type GroupRef } from '../../src/pipeline/composer.ts'
import {
  InjectedFailure,
  simulate,
  type Entry,
  type Outcome,
  type World,
} from '../support/simulation.ts'

interface Run extends Outcome {
  readonly world: World
}

const schedules = 1_500

describe(`over ${schedules} random schedules on a simulated clock`, () => {
  const runs: Run[] = []
  beforeAll(async () => {
    for (let seed = 0; seed < schedules; seed += 1) {
      const world = randomWorld(randomStream(seed, 'world'), seed)
      const clock = simulatedClock()
      runs.push({ world, ...(await clock.drive(simulate(world, clock))) })
    }
  })

  const completed = () => runs.filter(({ end }) => end?.reason === 'completed')
  const violations = (from: readonly Run[], broken: (run: Run) => boolean) =>
    from.filter(broken).map(({ world }) => world.seed)

  test('the worlds differ: each kind of end, and stale groups, come often', () => {
    expect(runs.filter(({ error }) => error !== undefined).length).toBeGreaterThan(200)
    expect(runs.filter(({ end }) => end?.reason === 'stopped').length).toBeGreaterThan(100)
    expect(completed().length).toBeGreaterThan(500)
    expect(runs.filter((run) => discarded(run, 'stale').length > 0).length).toBeGreaterThan(30)
    expect(
      runs.filter(({ world }) => world.schedule.groupsPerStep === undefined).length,
    ).toBeGreaterThan(500)
  })

  test('a failure or an abort ends the run with its cause within a second, and nothing keeps playing', () => {
    const failed = runs.filter(({ error }) => error !== undefined)
    expect(
      violations(
        failed,
        ({ error, endedAt, failedAt }) =>
          !(error instanceof InjectedFailure) || endedAt - failedAt! > 1_000,
      ),
    ).toEqual([])
    expect(violations(runs, ({ orphans }) => orphans > 0)).toEqual([])
  })

  test('no group trains twice, and none trains weights that are too new for it', () => {
    expect(
      violations(runs, (run) => new Set(trained(run).map(key)).size !== trained(run).length),
    ).toEqual([])
    expect(
      violations(runs, (run) =>
        trained(run).some(
          ({ step, version, usable }) =>
            version > step || (usable && step - version > run.world.schedule.maxStaleness),
        ),
      ),
    ).toEqual([])
  })

  test('the weights of a step are published between its own updates and those of the next', () => {
    expect(
      violations(runs, (run) => publishes(run).some(({ step }, index) => step !== index)),
    ).toEqual([])
    expect(
      violations(runs, ({ log }) =>
        log.some((entry, at) => {
          if (entry.type !== 'publish') return false
          const misplaced = (other: Entry, index: number) =>
            other.type === 'train' &&
            (index < at ? other.step > entry.step : other.step <= entry.step)
          return log.some(misplaced)
        }),
      ),
    ).toEqual([])
  })

  test('a step has as many optimizer steps as substeps, fewer only where it has too few groups, and ends with one', () => {
    const published = runs.flatMap((run) =>
      publishes(run).map(({ step }) => {
        const parts = trains(run).filter((part) => part.step === step)
        const groups = parts.reduce((sum, part) => sum + part.groups.length, 0)
        const updates = parts.reduce((sum, part) => sum + part.updates, 0)
        return { run, groups, updates, last: parts.at(-1)!.updates }
      }),
    )
    const wrong = published.filter(({ run: { world }, groups, updates, last }) => {
      const { substeps, minibatches, groupsPerStep } = world.schedule
      const exact = minibatches === 1 || (groupsPerStep === undefined && groups >= substeps)
      return last === 0 || updates > substeps || (exact && updates !== substeps)
    })
    expect(wrong.map(({ run }) => run.world.seed)).toEqual([])
  })

  test('F20: groups that are under way or wait for the learner are bounded, so sampling is paced', () => {
    expect(
      violations(
        runs,
        ({ world, usefulPeak }) => usefulPeak > (world.schedule.maxStaleness + 1) * stepSize(world),
      ),
    ).toEqual([])
    // Those that give nothing to learn wait for the end of their step, four steps' worth at most.
    expect(
      violations(
        runs,
        ({ world, peak }) => peak > (world.schedule.maxStaleness + 5) * stepSize(world),
      ),
    ).toEqual([])
  })

  test('each published step is recorded and reported once, in order', () => {
    expect(
      violations(runs, ({ reports }) => reports.some((step, index) => step !== index)),
    ).toEqual([])
    expect(
      violations(
        runs.filter(({ end }) => end !== undefined),
        (run) =>
          run.reports.length !== publishes(run).length || run.end!.steps !== run.reports.length,
      ),
    ).toEqual([])
  })

  test('a run that ended by itself left no weights changed that it did not publish', () => {
    expect(
      violations(
        runs.filter(({ end }) => end !== undefined),
        (run) => trains(run).some(({ step, updates }) => step >= run.reports.length && updates > 0),
      ),
    ).toEqual([])
  })

  test('planned steps train exactly their batches', () => {
    const planned = completed().filter(({ world }) => world.schedule.groupsPerStep === undefined)
    expect(
      violations(planned, (run) => {
        const { schedule, batches } = run.world
        const steps = Math.min(schedule.steps ?? Infinity, batches.length)
        const expected = batches
          .slice(0, steps)
          .flatMap((size, batch) => Array.from({ length: size }, (_, group) => `${batch}/${group}`))
        const found = trained(run).map(({ step, group }) => ({ step, group }))
        return (
          run.end!.steps !== steps ||
          found.map(key).join() !== expected.join() ||
          found.some(({ step, group }) => group.batch !== step)
        )
      }),
    ).toEqual([])
  })

  test('steps of the first groups to arrive are full to the last but one, and account for every group', () => {
    const arrival = completed().filter(({ world }) => world.schedule.groupsPerStep !== undefined)
    expect(
      violations(arrival, (run) =>
        usableByStep(run).some((size) => size > run.world.schedule.groupsPerStep!),
      ),
    ).toEqual([])
    const toTheEnd = arrival.filter(({ world, end }) => end!.steps !== world.schedule.steps)
    expect(toTheEnd.length).toBeGreaterThan(50)
    expect(
      violations(toTheEnd, (run) => {
        const accounted = new Set([
          ...trained(run).map(key),
          ...discarded(run, 'unused').map(key),
          ...(run.world.schedule.stale === 'drop' ? discarded(run, 'stale').map(key) : []),
        ])
        return accounted.size !== run.world.batches.reduce((sum, size) => sum + size, 0)
      }),
    ).toEqual([])
  })
})

function randomWorld(random: RandomStream, seed: number): World {
  const pick = <T>(...values: readonly T[]): T => values[random.integer(values.length)]!
  const batches = Array.from({ length: 1 + random.integer(10) }, () => random.integer(6))
  const ending = random.next()
  const at = 200 * random.next() * batches.length
  return {
    seed,
    batches,
    schedule: {
      maxStaleness: random.integer(4),
      substeps: 1 + random.integer(3),
      minibatches: 1 + random.integer(3),
      groupsPerStep: pick(undefined, 1 + random.integer(6)),
      stale: pick('replay', 'drop'),
      steps: pick(undefined, 1 + random.integer(6)),
      from: 0,
    },
    readMs: pick(0, 1, 50),
    playMs: pick(1, 40, 200),
    stragglers: pick(0, 0.05, 0.2),
    trainMs: pick(0, 5, 50),
    publishMs: pick(0, 20),
    finishMs: pick(0, 5, 100),
    slots: pick(1, 3, 100),
    unusable: pick(0, 0.3, 1),
    failure:
      ending < 0.25
        ? { what: pick('read', 'play', 'train', 'publish', 'finish'), nth: 1 + random.integer(6) }
        : undefined,
    stopAtMs: ending >= 0.25 && ending < 0.45 ? at : undefined,
    abortAtMs: ending >= 0.45 && ending < 0.55 ? at : undefined,
  }
}

function entries<Type extends Entry['type']>({ log }: Outcome, type: Type) {
  return log.filter(
    (entry): entry is Extract<Entry, { readonly type: Type }> => entry.type === type,
  )
}

const trains = (run: Run) => entries(run, 'train')
const publishes = (run: Run) => entries(run, 'publish')
const trained = (run: Run) =>
  trains(run).flatMap(({ step, groups }) => groups.map((played) => ({ step, ...played })))
const discarded = (run: Run, why: 'stale' | 'unused') =>
  entries(run, 'discard').flatMap((entry) => (entry.why === why ? [{ group: entry.ref }] : []))
const key = ({ group }: { readonly group: GroupRef }) => refKey(group)
const stepSize = ({ schedule, batches }: World) => schedule.groupsPerStep ?? Math.max(...batches)

const usableByStep = (run: Run) =>
  run.reports.map(
    (step) => trained(run).filter((group) => group.step === step && group.usable).length,
  )
