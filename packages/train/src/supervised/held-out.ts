import { datumLength, type Datum, type Learner } from '@tiltyard/core'

import { packByTokens } from '../optimize/split.ts'
import { meanNll } from './examples.ts'

/** Makes the learner's calls for the loss on data that is never trained; they come before any later call. */
export async function heldOutLoss(
  learner: Learner,
  data: readonly Datum[],
  tokensPerCall: number | undefined,
): Promise<Readonly<Record<string, number>>> {
  const packs = packByTokens(data.map(datumLength), tokensPerCall)
  const results = await Promise.all(
    packs.map((pack) =>
      learner.forward(
        pack.map((index) => data[index]!),
        { name: 'cross_entropy' },
      ),
    ),
  )
  const logprobs: Float32Array[] = []
  logprobs.length = data.length
  for (const [call, { logprobs: answered }] of results.entries())
    for (const [place, index] of packs[call]!.entries()) logprobs[index] = answered[place]!
  return { nll: meanNll(data, logprobs), num_sequences: data.length }
}
