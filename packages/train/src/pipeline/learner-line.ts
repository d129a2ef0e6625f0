import type { FinishedStep, PipelineWork, Played, TrainedStep, TrainPart } from './work.ts'

/** The learner's side: one call after the other is made, without waiting for results in between. */
export interface LearnerLine<Group, Result, Report> {
  train(part: TrainPart<Group>): void
  /** After the parts of a step. */
  publish(step: number): void
  finish(step: FinishedStep<Group, Result>, report: (report: Report) => void): void
  /** Resolves when all calls were answered and all steps finished. */
  idle(): Promise<void>
}

interface Callbacks<Group, Result> {
  readonly fail: (error: unknown) => void
  readonly published: (step: number, trained: TrainedStep<Group, Result>) => void
}

export function createLearnerLine<Plan, Group, Result, Report>(
  work: PipelineWork<Plan, Group, Result, Report>,
  { fail, published }: Callbacks<Group, Result>,
): LearnerLine<Group, Result, Report> {
  let line: Promise<void> = Promise.resolve()
  let finishing: Promise<void> = Promise.resolve()
  let step = open<Group, Result>()

  const queue = (task: () => Promise<void>) => {
    line = line.then(task)
    line.catch(fail)
  }

  return {
    train(part) {
      const into = step
      into.groups.push(...part.groups)
      queue(async () => {
        const { updates, settled } = await work.train(part)
        settled.catch(fail)
        into.updates += updates
        into.results.push(settled)
      })
    },
    publish(number) {
      const done = step
      step = open()
      queue(async () => {
        await finishing
        const publishing = work.publish(number, done.updates)
        publishing.catch(fail)
        const results = await Promise.all(done.results)
        await publishing
        published(number, { groups: done.groups, results, updates: done.updates })
      })
    },
    finish(finished, report) {
      finishing = work.finish(finished).then(report)
      finishing.catch(fail)
    },
    async idle() {
      await line
      await Promise.all(step.results)
      await finishing
    },
  }
}

interface OpenStep<Group, Result> {
  readonly groups: Played<Group>[]
  readonly results: Promise<Result>[]
  updates: number
}

function open<Group, Result>(): OpenStep<Group, Result> {
  return { groups: [], results: [], updates: 0 }
}
