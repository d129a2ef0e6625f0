import { asError } from '@tiltyard/core'

import { createInbox } from './inbox.ts'
import { createLearnerLine } from './learner-line.ts'
import { createPlays } from './plays.ts'
import type { ScheduleCommand, ScheduleInput } from './schedule.ts'
import type { PipelineEnd, PipelineOptions, PipelineWork, TrainedStep } from './work.ts'

type Message<Group, Result, Report> =
  | { readonly type: 'input'; readonly input: ScheduleInput }
  | {
      readonly type: 'published'
      readonly step: number
      readonly trained: TrainedStep<Group, Result>
    }
  | { readonly type: 'report'; readonly report: Report }
  | { readonly type: 'failed'; readonly error: Error }
  | { readonly type: 'done' }

/**
 * Carries out what the schedule decides: yields a report per step, in order, and returns how it ended. The first failure of
 * any part ends it with that cause; whatever the end, no play is under way when it returns, unless one ignores its signal.
 */
export async function* runPipeline<Plan, Group, Result, Report>(
  work: PipelineWork<Plan, Group, Result, Report>,
  options: PipelineOptions,
): AsyncGenerator<Report, PipelineEnd, undefined> {
  const { schedule } = work
  const inbox = createInbox<Message<Group, Result, Report>>()
  const fail = (error: unknown) => inbox.push({ type: 'failed', error: asError(error) })
  const tell = (input: ScheduleInput) => inbox.push({ type: 'input', input })
  const plays = createPlays(work, { tell, fail })
  const learner = createLearnerLine(work, {
    fail,
    published: (step, trained) => inbox.push({ type: 'published', step, trained }),
  })
  const abort = () => fail(options.signal.reason)
  const stop = () => tell({ type: 'stop' })
  if (options.signal.aborted) abort()
  if (options.stop?.aborted === true) stop()
  options.signal.addEventListener('abort', abort, { once: true })
  options.stop?.addEventListener('abort', stop, { once: true })

  let end: PipelineEnd | undefined
  const carryOut = (command: ScheduleCommand): void => {
    switch (command.type) {
      case 'read':
        plays.read(command.batch)
        return
      case 'play':
        plays.start(command.ref)
        return
      case 'stale':
        work.discard(plays.take(command.ref), command.ref, 'stale', command.step)
        return
      case 'train':
        learner.train({
          step: command.step,
          groups: command.groups.map((ref) => plays.take(ref)),
          updates: command.updates,
        })
        return
      case 'publish':
        learner.publish(command.step)
        return
      case 'abandon':
        plays.abandon(command.refs)
        return
      case 'end':
        for (const ref of command.unused)
          work.discard(plays.take(ref), ref, 'unused', command.steps)
        end = { reason: command.reason, steps: command.steps, position: schedule.position() }
        learner.idle().then(() => inbox.push({ type: 'done' }), fail)
    }
  }
  const advance = (input: ScheduleInput) => schedule.next(input).forEach(carryOut)

  try {
    advance({ type: 'begin' })
    for (;;) {
      const message = await inbox.take()
      if (message.type === 'failed') throw message.error
      if (message.type === 'report') yield message.report
      if (message.type === 'input') advance(message.input)
      if (message.type === 'published') {
        const { step, trained } = message
        const commands = schedule.next({ type: 'published' })
        learner.finish({ step, ...trained, position: schedule.position() }, (report) =>
          inbox.push({ type: 'report', report }),
        )
        commands.forEach(carryOut)
      }
      if (message.type === 'done' && end !== undefined) return end
    }
  } finally {
    options.signal.removeEventListener('abort', abort)
    options.stop?.removeEventListener('abort', stop)
    await plays.close(options)
  }
}
