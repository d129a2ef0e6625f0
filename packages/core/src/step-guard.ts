import { StateError } from './errors.ts'

/**
 * For learners: keeps an optimizer step from going without data that its caller counted on. Two calls, in the order of the learner's
 * own: `follow` each forwardBackward, and `expect` when a step is called; what that gives is called when the step's turn has come.
 */
export interface StepGuard {
  /** Takes the promise whose end the calls behind it wait for. @returns it as it is. */
  follow<T>(forwardBackward: Promise<T>): Promise<T>
  /** @returns what throws a StateError when a forwardBackward failed that was unanswered when `expect` was called. */
  expect(): () => void
}

/** A guard for one learner. */
export function createStepGuard(): StepGuard {
  let failures = 0
  return {
    follow(call) {
      call.catch(() => {
        failures += 1
      })
      return call
    },
    expect() {
      const known = failures
      return () => {
        if (failures > known) throw missingData()
      }
    },
  }
}

/** What a step rejects with whose data is missing. */
export function missingData(): StateError {
  return new StateError(
    'no optimizer step was made: a forwardBackward before it failed, which this step counted on; gradients of the others are kept',
  )
}
