import assert from 'node:assert/strict'

import {
  lossNames,
  type AdamParams,
  type Backend,
  type Datum,
  type Learner,
  type LearnerOptions,
  type Lora,
  type Sampler,
} from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { far, near, refused } from './expect.ts'
import { learnerCases } from './learner-cases.ts'
import { crossEntropy, promptOf, type LearnerFeature } from './learner-fixture.ts'
import { datum, forLoss } from './policy-data.ts'
import { samplerCases, type SamplerFeature } from './sampler-cases.ts'

/** What a backend may lack. Each is declared with the reason; an undeclared lack fails. */
export type BackendFeature =
  | SamplerFeature
  | LearnerFeature
  /** Adapters with the same seed start equal. Without it, cases that compare two learners are left out. */
  | 'adapterSeeds'
  /** A loaded optimizer continues as if nothing had happened. */
  | 'optimizerState'
  /** Checkpoints can be listed. */
  | 'list'
  /** Checkpoints can be deleted. */
  | 'delete'

/** All names of what may be lacking. */
export const backendFeatures = Object.keys({
  deterministic: true,
  topLogprobs: true,
  stopStrings: true,
  untempered: true,
  cross_entropy: true,
  importance_sampling: true,
  ppo: true,
  cispo: true,
  dro: true,
  mask: true,
  clipNorm: true,
  weightDecay: true,
  adamSettings: true,
  sum: true,
  adapterSeeds: true,
  optimizerState: true,
  list: true,
  delete: true,
} satisfies Record<BackendFeature, true>) as readonly BackendFeature[]

export interface BackendCasesOptions {
  /** A fresh backend that shares its stored checkpoints with no other case. Closed by the case. */
  readonly create: () => Promise<Backend>
  readonly model: string
  /** Default: LoRA of rank 8, seed 1. */
  readonly adaptation?: 'full' | Lora
  readonly vocabulary?: number
  readonly tolerance?: number
  readonly learningRate?: number
  readonly decode?: (ids: Int32Array) => string
  readonly lacks?: Readonly<Partial<Record<BackendFeature, string>>>
}

/**
 * What every backend promises, with all promises of its samplers and learners. Not covered: that a checkpoint outlives its process, or
 * a crash while it is written.
 */
export function backendCases(options: BackendCasesOptions): readonly ConformanceCase[] {
  const {
    create,
    model,
    vocabulary = 64,
    tolerance = 1e-4,
    learningRate = 0.01,
    lacks = {},
  } = options
  const adaptation = options.adaptation ?? { rank: 8, seed: 1 }
  const learnerOptions: LearnerOptions = { model, adaptation }
  const adam: AdamParams = { learningRate }

  const data = (seed: number): readonly Datum[] =>
    [0, 1].map((index) => forLoss(datum(8 + 4 * index, seed + index, vocabulary), crossEntropy))
  const probe = data(1)
  const seen = async (learner: Learner) =>
    (await learner.forward(probe, crossEntropy)).logprobs.flatMap((values) => [...values])
  const step = async (learner: Learner, seed: number) => {
    const learning = learner.forwardBackward(data(seed), crossEntropy)
    await Promise.all([learning, learner.optimStep(adam)])
  }

  const promise = (
    name: string,
    features: readonly BackendFeature[],
    body: (backend: Backend) => Promise<void>,
  ): ConformanceCase => {
    const skip = features.map((feature) => lacks[feature]).find((reason) => reason !== undefined)
    const run = async () => {
      const backend = await create()
      try {
        await body(backend)
      } finally {
        await backend.close()
      }
    }
    return skip === undefined ? { name, run } : { name, run, skip }
  }

  const owners = new WeakMap<Sampler | Learner, Backend>()
  const owned = async <T extends Sampler | Learner>(
    make: (backend: Backend) => Promise<T>,
  ): Promise<T> => {
    const backend = await create()
    try {
      const made = await make(backend)
      owners.set(made, backend)
      return made
    } catch (error) {
      await backend.close()
      throw error
    }
  }
  const release = async (made: Sampler | Learner) => owners.get(made)?.close()

  return [
    promise(
      'a backend describes what it can, and lacks what was declared lacking',
      [],
      async (backend) => {
        assert.equal(backend.specVersion, 'backend/1')
        assert.ok(backend.name.length > 0, 'name is empty')
        const described = await backend.describe()
        const info = described.models.find(({ name }) => name === model)
        assert.ok(info !== undefined, `${model} is not among the models`)
        assert.ok(info.contextWindow > 0)
        assert.ok(described.executor.length > 0, 'executor is empty')
        assert.ok(described.adaptations.includes(adaptation === 'full' ? 'full' : 'lora'))
        const agrees = (name: keyof typeof lacks, says: boolean) =>
          assert.equal(
            says,
            lacks[name] === undefined,
            says
              ? `${name} was declared lacking, but the backend says that it has it`
              : `the backend says that it lacks ${name}, which was not declared lacking`,
          )
        for (const name of lossNames) agrees(name, described.losses.includes(name))
        for (const name of ['mask', 'topLogprobs', 'deterministic'] as const)
          agrees(name, described[name])
      },
    ),

    promise('a wrong model name is refused by one that exists', [], async (backend) => {
      const codes = ['NOT_FOUND']
      const wrong = `${model}-that-is-not`
      const error = await refused(() => backend.learner({ model: wrong, adaptation }), codes, wrong)
      assert.ok(error.message.includes(model), 'the error names no model that exists')
      await refused(() => backend.sampler({ model: wrong }), codes, wrong)
    }),

    promise('a fresh learner is the model as it is', [], async (backend) => {
      const base = await backend.sampler({ model })
      const learner = await backend.learner(learnerOptions)
      for (const [index, values] of (await learner.forward(probe, crossEntropy)).logprobs.entries())
        near(
          (await base.logprobs(promptOf(probe[index]!))).slice(1),
          values,
          tolerance,
          `datum ${index}`,
        )
    }),

    promise('learners side by side don’t touch each other', [], async (backend) => {
      const [left, right] = await Promise.all([
        backend.learner(learnerOptions),
        backend.learner(learnerOptions),
      ])
      const before = await seen(right)
      await step(left, 1)
      near(await seen(right), before, tolerance, 'the learner that made no step')
      far(await seen(left), before, 10 * tolerance, 'the learner that made one')
    }),

    promise(
      'adapters with the same seed start and go on the same',
      ['adapterSeeds'],
      async (backend) => {
        const [left, right] = await Promise.all([
          backend.learner(learnerOptions),
          backend.learner(learnerOptions),
        ])
        await step(left, 20)
        await step(right, 20)
        near(await seen(left), await seen(right), tolerance, 'after one step')
      },
    ),

    promise('a saved learner goes on where it was', ['optimizerState'], async (backend) => {
      const first = await backend.learner(learnerOptions)
      await step(first, 30)
      await step(first, 32)
      const from = await first.save('two-steps')
      assert.equal(from.kind, 'training')
      const saved = await seen(first)
      await step(first, 34)
      const loaded = await backend.learner({ ...learnerOptions, from })
      assert.equal(loaded.steps, 2)
      near(await seen(loaded), saved, tolerance, 'as loaded')
      await step(loaded, 34)
      near(await seen(loaded), await seen(first), tolerance, 'one step later')
      assert.equal(loaded.steps, 3)
    }),

    promise(
      'a learner loaded without its optimizer has the weights alone',
      ['optimizerState'],
      async (backend) => {
        const first = await backend.learner(learnerOptions)
        for (const seed of [40, 42, 44]) await step(first, seed)
        const from = await first.save('three-steps')
        const saved = await seen(first)
        const [plain, whole] = await Promise.all([
          backend.learner({ ...learnerOptions, from, optimizer: false }),
          backend.learner({ ...learnerOptions, from }),
        ])
        near(await seen(plain), saved, tolerance, 'as loaded')
        await step(plain, 46)
        await step(whole, 46)
        far(await seen(plain), await seen(whole), 2 * tolerance, 'with and without the optimizer')
      },
    ),

    promise('a save is of its place in the order of calls', [], async (backend) => {
      const learner = await backend.learner(learnerOptions)
      const before = await seen(learner)
      const saving = learner.save('before')
      const stepping = step(learner, 50)
      const from = await saving
      await stepping
      near(
        await seen(await backend.learner({ ...learnerOptions, from })),
        before,
        tolerance,
        'saved',
      )
    }),

    promise('a sampler published by name can be opened again', ['list'], async (backend) => {
      const learner = await backend.learner(learnerOptions)
      await step(learner, 60)
      const published = await learner.publish({ name: 'served' })
      const whole = promptOf(probe[0]!)
      const values = await published.logprobs(whole)
      const listed = await backend.checkpoints().list()
      const found = listed.find(({ name, kind }) => name === 'served' && kind === 'sampling')
      assert.ok(found !== undefined, 'the published checkpoint is not listed')
      await published.close()
      const opened = await backend.sampler({ checkpoint: found })
      near(await opened.logprobs(whole), values, tolerance, 'opened against published')
    }),

    promise(
      'checkpoints are listed, exist, and are gone once deleted',
      ['list', 'delete'],
      async (backend) => {
        const learner = await backend.learner(learnerOptions)
        const kept = await learner.save('kept')
        const dropped = await learner.save('dropped')
        const store = backend.checkpoints()
        const names = (await store.list())
          .filter(({ kind }) => kind === 'training')
          .map(({ name }) => name)
        assert.deepEqual(names.toSorted(), ['dropped', 'kept'])
        assert.equal(await store.exists(dropped), true)
        await store.delete(dropped)
        await store.delete(dropped)
        assert.equal(await store.exists(dropped), false)
        assert.equal(await store.exists(kept), true)
        await refused(
          () => backend.learner({ ...learnerOptions, from: dropped }),
          ['NOT_FOUND'],
          'a deleted checkpoint',
        )
      },
    ),

    promise('a checkpoint that never was is not found', [], async (backend) => {
      const learner = await backend.learner(learnerOptions)
      const real = await learner.save('real')
      const from = { ...real, path: `${real.path}-not` }
      assert.equal(await backend.checkpoints().exists(from), false)
      await refused(() => backend.learner({ ...learnerOptions, from }), ['NOT_FOUND'], 'a learner')
      await refused(
        () => backend.sampler({ checkpoint: { ...from, kind: 'sampling' } }),
        ['NOT_FOUND'],
        'a sampler',
      )
    }),

    promise('closing a backend closes what it made, and may be repeated', [], async (backend) => {
      const learner = await backend.learner(learnerOptions)
      const published = await learner.publish()
      const base = await backend.sampler({ model })
      await backend.close()
      await backend.close()
      const whole = promptOf(probe[0]!)
      await refused(() => learner.forward(probe, crossEntropy), ['STATE'], 'its learner')
      await refused(() => published.logprobs(whole), ['STATE'], 'its published sampler')
      await refused(() => base.logprobs(whole), ['STATE'], 'its sampler')
      await refused(() => backend.sampler({ model }), ['STATE'], 'the backend itself')
    }),

    ...prefixed(
      'sampler',
      samplerCases({
        ...options,
        release,
        create: () => owned((backend) => backend.sampler({ model })),
      }),
    ),
    ...prefixed(
      'learner',
      learnerCases({
        ...options,
        release,
        create: () => owned((backend) => backend.learner(learnerOptions)),
      }),
    ),
  ]
}

function prefixed(what: string, cases: readonly ConformanceCase[]): readonly ConformanceCase[] {
  return cases.map((it) => ({ ...it, name: `${what}: ${it.name}` }))
}
