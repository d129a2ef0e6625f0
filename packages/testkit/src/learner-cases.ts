import assert from 'node:assert/strict'

import {
  adamDefaults,
  type Datum,
  type Learner,
  type Loss,
  type LossResult,
  type Sampler,
} from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { distance, far, near, refused } from './expect.ts'
import {
  crossEntropy,
  descent,
  learnerFixture,
  promptOf,
  type LearnerCasesOptions,
} from './learner-fixture.ts'
import { lossCases } from './loss-cases.ts'
import { lossOf } from './policy-data.ts'

/**
 * What every learner promises. Sequences of 8 to 16 tokens, some forty steps in all. Not covered: images, speed, memory, and Adam's
 * formula beyond what its settings do to log-probabilities.
 */
export function learnerCases(options: LearnerCasesOptions): readonly ConformanceCase[] {
  const fixture = learnerFixture(options)
  const { tolerance, learningRate, adam, data, probe, seen, allowed, promise } = fixture

  return [
    promise('a learner says what it is, and has made no step', [], async (learner) => {
      assert.equal(learner.specVersion, 'learner/1')
      assert.ok(learner.model.length > 0, 'model is empty')
      assert.equal(learner.steps, 0)
    }),

    promise(
      'forward gives each datum’s log-probabilities, in order',
      ['cross_entropy'],
      async (learner) => {
        const batch = data(5, 100, crossEntropy)
        const { logprobs, loss } = await learner.forward(batch, crossEntropy)
        assert.deepEqual(
          logprobs.map((values) => values.length),
          batch.map(({ targets }) => targets.length),
        )
        assert.ok(Number.isFinite(loss))
        for (const [index, values] of logprobs.entries()) {
          assert.ok(values instanceof Float32Array)
          assert.ok(values.every((value) => value <= 0 && Number.isFinite(value)))
          const alone = await learner.forward([batch[index]!], crossEntropy)
          near(values, alone.logprobs[0]!, tolerance, `datum ${index} in a batch against alone`)
        }
      },
    ),

    ...lossCases(fixture),

    promise(
      'forward changes nothing',
      ['cross_entropy', 'adamSettings'],
      async (learner, another) => {
        const plain = await another()
        const batch = data(3, 200, crossEntropy)
        const before = await seen(learner)
        await learner.forwardBackward(batch, crossEntropy)
        await learner.forward(data(4, 210, crossEntropy), crossEntropy)
        await plain.forwardBackward(batch, crossEntropy)
        near(await seen(learner), before, tolerance, 'before any step')
        await Promise.all([learner.optimStep(descent), plain.optimStep(descent)])
        const after = await seen(learner)
        near(after, await seen(plain), allowed(after, before), 'with a forward between')
      },
    ),

    promise(
      'forwardBackward tells the same loss and log-probabilities as forward',
      ['cross_entropy'],
      async (learner) => {
        const batch = data(3, 300, crossEntropy)
        const forward = await learner.forward(batch, crossEntropy)
        const both = await learner.forwardBackward(batch, crossEntropy)
        near([both.loss], [forward.loss], 1e-4 * Math.max(1, Math.abs(forward.loss)), 'loss')
        for (const [index, values] of both.logprobs.entries())
          near(values, forward.logprobs[index]!, tolerance, `datum ${index}`)
      },
    ),

    promise(
      'gradients add up until a step',
      ['cross_entropy', 'sum', 'adamSettings'],
      async (learner, another) => {
        const whole = await another()
        const batch = data(4, 400, crossEntropy)
        const before = await seen(learner, batch)
        await learner.forwardBackward(batch.slice(0, 1), crossEntropy)
        await learner.forwardBackward(batch.slice(1), crossEntropy)
        await whole.forwardBackward(batch, crossEntropy)
        await Promise.all([learner.optimStep(descent), whole.optimStep(descent)])
        const after = await seen(learner, batch)
        far(after, before, 10 * tolerance, 'a step of descent')
        near(after, await seen(whole, batch), allowed(after, before), 'two parts against the whole')
      },
    ),

    promise('a step uses its gradients up', ['cross_entropy', 'adamSettings'], async (learner) => {
      await learner.forwardBackward(data(2, 500, crossEntropy), crossEntropy)
      await learner.optimStep(descent)
      const after = await seen(learner)
      await learner.forwardBackward([silent(data(1, 510, crossEntropy)[0]!)], crossEntropy)
      await learner.optimStep(descent)
      near(await seen(learner), after, tolerance, 'a step on a loss without weight')
    }),

    promise(
      'settings of Adam that are left out have their defaults',
      ['cross_entropy', 'adamSettings'],
      async (learner, another) => {
        const spelled = await another()
        const batch = data(2, 600, crossEntropy)
        for (const it of [learner, spelled]) await it.forwardBackward(batch, crossEntropy)
        await learner.optimStep(adam)
        await spelled.optimStep({ ...adamDefaults, learningRate })
        near(await seen(learner), await seen(spelled), tolerance, 'left out against spelled out')
      },
    ),

    promise(
      'clipNorm bounds the whole gradient',
      ['cross_entropy', 'clipNorm', 'adamSettings'],
      async (learner, another) => {
        const batch = data(3, 700, crossEntropy)
        const before = await seen(learner, batch)
        const changes: number[] = []
        for (const clipNorm of [0, 1e9, 1e-3]) {
          const it = await another()
          await it.forwardBackward(batch, crossEntropy)
          await it.optimStep({ ...descent, clipNorm })
          changes.push(distance(await seen(it, batch), before))
        }
        const [free, wide, tight] = changes as [number, number, number]
        near([wide], [free], tolerance + 2e-3 * free, 'a wide bound against none')
        assert.ok(tight < free / 2, `a bound of 0.001 left a change of ${tight} of ${free}`)
      },
    ),

    promise(
      'weight decay acts apart from the gradient',
      ['cross_entropy', 'weightDecay', 'adamSettings'],
      async (learner) => {
        const batch = data(3, 800, crossEntropy)
        await learner.forwardBackward(batch, crossEntropy)
        await learner.optimStep(adam)
        const after = await seen(learner, batch)
        await learner.forwardBackward([silent(data(1, 810, crossEntropy)[0]!)], crossEntropy)
        await learner.optimStep({ learningRate: 1, beta1: 0, epsilon: 1e9, weightDecay: 0.5 })
        far(await seen(learner, batch), after, 10 * tolerance, 'decay by half')
      },
    ),

    promise('steps on the same data lower its loss', ['cross_entropy'], async (learner) => {
      const batch = data(2, 900, crossEntropy).map(likely)
      const first = await learner.forwardBackward(batch, crossEntropy)
      for (let step = 0; step < 8; step += 1) {
        await learner.optimStep(adam)
        await learner.forwardBackward(batch, crossEntropy)
      }
      const last = await learner.forward(batch, crossEntropy)
      assert.ok(last.loss < first.loss, `the loss went from ${first.loss} to ${last.loss}`)
      assert.equal(learner.steps, 8)
    }),

    promise(
      'calls take effect in the order in which they were made, without waiting',
      ['cross_entropy'],
      async (learner, another) => {
        const patient = await another()
        const batches = [1_100, 1_110, 1_120].map((seed) => data(2, seed, crossEntropy))
        const pending: Promise<LossResult>[] = []
        const steps: Promise<unknown>[] = []
        for (const batch of batches) {
          pending.push(learner.forwardBackward(batch, crossEntropy))
          steps.push(learner.optimStep(adam))
          pending.push(learner.forward(probe, crossEntropy))
        }
        const rushed = await Promise.all(pending)
        await Promise.all(steps)
        const waited: LossResult[] = []
        for (const batch of batches) {
          waited.push(await patient.forwardBackward(batch, crossEntropy))
          await patient.optimStep(adam)
          waited.push(await patient.forward(probe, crossEntropy))
        }
        assert.equal(learner.steps, 3)
        for (const [call, result] of rushed.entries())
          for (const [index, values] of result.logprobs.entries())
            near(values, waited[call]!.logprobs[index]!, tolerance, `call ${call}, datum ${index}`)
      },
    ),

    promise(
      'wrong data is refused and adds nothing',
      ['cross_entropy', 'adamSettings'],
      async (learner, another) => {
        const plain = await another()
        const [good, other] = data(2, 1_200, crossEntropy) as [Datum, Datum]
        const nan = other.weights!.slice()
        nan[3] = Number.NaN
        const wrong: readonly (readonly [string, Datum])[] = [
          ['a weight that is NaN', { ...other, weights: nan }],
          ['a weight too few', { ...other, weights: other.weights!.slice(1) }],
          ['a target too few', { ...other, targets: other.targets.slice(1) }],
          ['no weights', { input: other.input, targets: other.targets }],
        ]
        const before = await seen(learner)
        await learner.forwardBackward([good], crossEntropy)
        for (const [what, it] of wrong)
          await refused(() => learner.forwardBackward([other, it], crossEntropy), ['DATA'], what)
        await refused(() => learner.forwardBackward([], crossEntropy), ['DATA'], 'no data')
        await refused(() => learner.forward([], crossEntropy), ['DATA'], 'no data to forward')
        await plain.forwardBackward([good], crossEntropy)
        await Promise.all([learner.optimStep(descent), plain.optimStep(descent)])
        const after = await seen(learner)
        near(after, await seen(plain), allowed(after, before), 'after refused data')
      },
    ),

    promise(
      'F45: no step is made whose data failed, and nothing behind it is held up',
      ['cross_entropy'],
      async (learner) => {
        const [good, other] = data(2, 1_300, crossEntropy) as [Datum, Datum]
        const before = await seen(learner)
        const calls = [
          learner.forwardBackward([good], crossEntropy),
          learner.forwardBackward([{ ...other, targets: other.targets.slice(1) }], crossEntropy),
          learner.optimStep(adam),
          learner.forward([good], crossEntropy),
        ]
        const outcomes = await Promise.allSettled(calls)
        assert.deepEqual(
          outcomes.map(({ status }) => status),
          ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
        )
        await refused(() => calls[2]!, ['STATE'], 'the step')
        assert.equal(learner.steps, 0)
        near(await seen(learner), before, tolerance, 'after the step that was not made')
        await learner.optimStep(adam)
        assert.equal(learner.steps, 1, 'a step after its caller was told')
      },
    ),

    promise(
      'a published sampler scores as the learner does',
      ['cross_entropy'],
      async (learner) => {
        await learner.forwardBackward(data(2, 1_400, crossEntropy), crossEntropy)
        await learner.optimStep(adam)
        const sampler = await learner.publish({ step: 7 })
        try {
          assert.equal(sampler.version.step, 7)
          await agree(learner, sampler, probe, tolerance)
        } finally {
          await sampler.close()
        }
      },
    ),

    promise(
      'a published sampler keeps its weights, whatever the learner does',
      ['cross_entropy'],
      async (learner) => {
        const [first] = probe as [Datum]
        const early = await learner.publish()
        const whole = promptOf(first)
        const before = await early.logprobs(whole)
        const learning = learner.forwardBackward(probe.map(likely), crossEntropy)
        const stepping = learner.optimStep({ learningRate: 10 * learningRate })
        const publishing = learner.publish()
        await Promise.all([learning, stepping])
        const late = await publishing
        near(await early.logprobs(whole), before, tolerance, 'the early sampler')
        far(await late.logprobs(whole), before, 10 * tolerance, 'the late sampler')
        assert.notEqual(late.version.id, early.version.id)
        assert.equal(early.version.step, 0)
        assert.equal(late.version.step, 1)
        await agree(learner, late, probe, tolerance)
        await learner.close()
        near(await early.logprobs(whole), before, tolerance, 'after the learner was closed')
        await Promise.all([early.close(), late.close()])
      },
    ),

    promise('a masked target has no part in the loss', ['dro', 'mask', 'sum'], async (learner) => {
      const loss: Loss = { name: 'dro', beta: 0.1 }
      const [plain] = data(1, 1_600, loss) as [Datum]
      const mask = plain.targets.map((_, position) => position % 2)
      const masked = { ...plain, mask: Float32Array.from(mask) }
      const result = await learner.forward([masked], loss)
      const expected = lossOf(masked, loss, result.logprobs[0]!).loss
      near([result.loss], [expected], 1e-4 * Math.max(1, Math.abs(expected)), 'loss')
    }),

    promise(
      'a closed learner refuses calls, and may be closed again',
      ['cross_entropy'],
      async (learner) => {
        await learner.close()
        await learner.close()
        await refused(() => learner.forward(probe, crossEntropy), ['STATE'], 'forward after close')
        await refused(() => learner.optimStep(adam), ['STATE'], 'optimStep after close')
        await refused(() => learner.publish(), ['STATE'], 'publish after close')
      },
    ),
  ]
}

/** Its weights are zero: it gives no gradient. */
function silent(it: Datum): Datum {
  return { ...it, weights: new Float32Array(it.targets.length) }
}

/** Its weights are one: what it says should become likely. */
function likely(it: Datum): Datum {
  return { ...it, weights: new Float32Array(it.targets.length).fill(1) }
}

async function agree(
  learner: Learner,
  sampler: Sampler,
  batch: readonly Datum[],
  tolerance: number,
): Promise<void> {
  const { logprobs } = await learner.forward(batch, crossEntropy)
  for (const [index, values] of logprobs.entries()) {
    const scored = await sampler.logprobs(promptOf(batch[index]!))
    near(scored.slice(1), values, tolerance, `datum ${index}: sampler against learner`)
  }
}
