import type { Datum, Learner, Loss } from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { far, near } from './expect.ts'
import { crossEntropy, descent, type Fixture } from './learner-fixture.ts'
import { lossOf, offPolicy } from './policy-data.ts'

const losses: readonly Loss[] = [
  { name: 'cross_entropy' },
  { name: 'importance_sampling' },
  { name: 'ppo' },
  { name: 'ppo', clipLow: 0.95, clipHigh: 1.05 },
  { name: 'cispo' },
  { name: 'cispo', clipLow: 0.9, clipHigh: 1.1 },
  { name: 'dro', beta: 0.05 },
]

/** Value and gradient of each loss, against the formulas of `Loss`. */
export function lossCases({
  data,
  seen,
  promise,
  allowed,
  tolerance,
}: Fixture): readonly ConformanceCase[] {
  return losses.flatMap((loss, index): readonly ConformanceCase[] => {
    const settings = Object.keys(loss).length > 1 && loss.name !== 'dro' ? ', with bounds' : ''
    const drawn = data(3, 10 * index, loss)
    const sampled = async (learner: Learner): Promise<readonly Datum[]> => {
      if (loss.name === 'cross_entropy') return drawn
      const { logprobs } = await learner.forward(drawn, loss)
      return drawn.map((it, at) => offPolicy(it, logprobs[at]!, at))
    }
    return [
      promise(
        `${loss.name}${settings}: the loss is its formula, summed`,
        [loss.name, 'sum'],
        async (learner) => {
          const batch = await sampled(learner)
          const result = await learner.forward(batch, loss)
          const expected = batch.map((it, at) => lossOf(it, loss, result.logprobs[at]!).loss)
          const total = expected.reduce((sum, value) => sum + value, 0)
          near([result.loss], [total], 1e-4 * Math.max(1, Math.abs(total)), 'loss')
        },
      ),
      promise(
        `${loss.name}${settings}: its gradient is the derivative of its formula`,
        [loss.name, 'cross_entropy', 'sum', 'adamSettings'],
        async (learner, another) => {
          const reference = await another()
          const batch = await sampled(learner)
          const { logprobs } = await learner.forward(batch, loss)
          const weighted = batch.map(({ input, targets, ...rest }, at) => ({
            input,
            targets,
            weights: lossOf({ input, targets, ...rest }, loss, logprobs[at]!).slopes.map(
              (slope) => -slope,
            ),
          }))
          const before = await seen(learner, batch)
          await learner.forwardBackward(batch, loss)
          await reference.forwardBackward(weighted, crossEntropy)
          await Promise.all([learner.optimStep(descent), reference.optimStep(descent)])
          const after = await seen(learner, batch)
          far(after, before, 10 * tolerance, 'a step of descent')
          near(
            after,
            await seen(reference, batch),
            allowed(after, before),
            'after one step of descent',
          )
        },
      ),
    ]
  })
}
