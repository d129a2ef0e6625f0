import type {
  AdamParams,
  Datum,
  Learner,
  Loss,
  LossName,
  RenderedPrompt,
  TokenChunk,
} from '@tiltyard/core'
import { tokenPrompt } from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { distance } from './expect.ts'
import { datum, forLoss } from './policy-data.ts'

/** What a learner may lack. Each is declared with the reason; an undeclared lack fails. Names of losses are lacks too. */
export type LearnerFeature =
  | LossName
  /** A datum's mask reaches the loss. */
  | 'mask'
  /** Gradients are clipped to a global norm. */
  | 'clipNorm'
  /** Weight decay. */
  | 'weightDecay'
  /** All settings of Adam reach it. Without it only the learning rate does. */
  | 'adamSettings'
  /** A gradient is the plain sum over tokens and data. */
  | 'sum'

export interface LearnerCasesOptions {
  /** A fresh learner in its first state, closed by the case. All of them start with the same weights. */
  readonly create: () => Promise<Learner>
  /** Called with each learner once its case is over. */
  readonly release?: (learner: Learner) => Promise<void>
  /** Data are made of ids below this. Default 64. */
  readonly vocabulary?: number
  /** Largest difference of log-probabilities that should be equal, in nats. Default 1e-4. */
  readonly tolerance?: number
  /** Learning rate at which a few steps move log-probabilities by much more than the tolerance. Default 0.01. */
  readonly learningRate?: number
  readonly lacks?: Readonly<Partial<Record<LearnerFeature, string>>>
}

export const crossEntropy: Loss = { name: 'cross_entropy' }

/** With an epsilon far above any gradient AdamW is plain descent: an update is linear in the gradient. */
export const descent: AdamParams = { learningRate: 100, epsilon: 1_000, beta1: 0, beta2: 0 }

export type Fixture = ReturnType<typeof learnerFixture>

/** What the cases of a learner share. */
export function learnerFixture(options: LearnerCasesOptions) {
  const {
    create,
    release,
    vocabulary = 64,
    tolerance = 1e-4,
    learningRate = 0.01,
    lacks = {},
  } = options
  const data = (count: number, seed: number, loss: Loss): readonly Datum[] =>
    Array.from({ length: count }, (_, index) =>
      forLoss(datum(8 + 4 * (index % 3), seed + index, vocabulary), loss),
    )
  const probe = data(2, 1_000, crossEntropy)
  const adam: AdamParams = { learningRate }
  return {
    tolerance,
    learningRate,
    adam,
    data,
    probe,
    /** log-probabilities that show what weights a learner has. */
    seen: async (learner: Learner, on = probe): Promise<readonly number[]> => {
      const shown = on.map(({ input, targets }) => ({
        input,
        targets,
        weights: new Float32Array(targets.length),
      }))
      const { logprobs } = await learner.forward(shown, crossEntropy)
      return logprobs.flatMap((values) => [...values])
    },
    /** Sums in another order differ by a hair of the change. */
    allowed: (after: readonly number[], before: readonly number[]): number =>
      tolerance + 2e-3 * distance(after, before),
    promise: (
      name: string,
      features: readonly LearnerFeature[],
      body: (learner: Learner, another: () => Promise<Learner>) => Promise<void>,
    ): ConformanceCase => {
      const skip = features.map((feature) => lacks[feature]).find((reason) => reason !== undefined)
      const run = async () => {
        const made: Learner[] = []
        const make = async () => {
          const learner = await create()
          made.push(learner)
          return learner
        }
        try {
          await body(await make(), make)
        } finally {
          for (const learner of made) {
            await learner.close()
            await release?.(learner)
          }
        }
      }
      return skip === undefined ? { name, run } : { name, run, skip }
    },
  }
}

/** Input and last target: the sequence that a datum is made of. */
export function promptOf({ input, targets }: Datum): RenderedPrompt {
  return tokenPrompt([...(input[0] as TokenChunk).ids, targets.at(-1)!])
}
