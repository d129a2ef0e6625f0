import assert from 'node:assert/strict'

import {
  concatIds,
  createPrompt,
  promptIds,
  tokenChunk,
  tokenPrompt,
  type RenderedPrompt,
  type Sample,
  type Sampler,
  type SampleRequest,
} from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { near, refused } from './expect.ts'
import { ids } from './policy-data.ts'

/** What a sampler may lack. Each is declared with the reason; an undeclared lack fails. */
export type SamplerFeature =
  /** Seeded samples are the same again, whatever else runs. */
  | 'deterministic'
  /** `topLogprobs` is there. */
  | 'topLogprobs'
  /** Stop strings. */
  | 'stopStrings'
  /** log-probabilities are untempered and untruncated, also when sampling isn't. */
  | 'untempered'

export interface SamplerCasesOptions {
  /** A fresh sampler, closed by the case. Every one has the same weights. */
  readonly create: () => Promise<Sampler>
  /** Called with each sampler once its case is over. */
  readonly release?: (sampler: Sampler) => Promise<void>
  /** Prompts are made of ids below this. Default 64. */
  readonly vocabulary?: number
  /** Largest difference of log-probabilities that should be equal, in nats. Default 1e-4. */
  readonly tolerance?: number
  /** Text of ids, for the case of stop strings. */
  readonly decode?: (ids: Int32Array) => string
  readonly lacks?: Readonly<Partial<Record<SamplerFeature, string>>>
}

/**
 * What every sampler promises. Short prompts, some thousand tokens in all; costs little against a live service. Not covered: images,
 * speed, and whether samples follow the distribution beyond their own log-probabilities.
 */
export function samplerCases(options: SamplerCasesOptions): readonly ConformanceCase[] {
  const { create, release, vocabulary = 64, tolerance = 1e-4, decode, lacks = {} } = options

  const prompt = (length: number, seed: number) => tokenPrompt(ids(length, seed, vocabulary))

  const promise = (
    name: string,
    body: (sampler: Sampler) => Promise<void>,
    feature?: SamplerFeature,
  ): ConformanceCase => {
    const skip = feature === undefined ? undefined : lacks[feature]
    const run = async () => {
      const sampler = await create()
      try {
        await body(sampler)
      } finally {
        await sampler.close()
        await release?.(sampler)
      }
    }
    return skip === undefined ? { name, run } : { name, run, skip }
  }

  return [
    promise('a sampler says what it is: contract, version, context window', async (sampler) => {
      assert.equal(sampler.specVersion, 'sampler/1')
      assert.ok(sampler.version.id.length > 0, 'version.id is empty')
      assert.ok(Number.isInteger(sampler.version.step), 'version.step is no integer')
      assert.ok(sampler.contextWindow > 0, 'contextWindow is not positive')
    }),

    promise('n samples come back, each with one log-probability per id', async (sampler) => {
      const samples = await sampler.sample({ prompt: prompt(6, 1), maxTokens: 8, n: 3 })
      assert.equal(samples.length, 3)
      for (const { ids: sampled, logprobs, stop } of samples) {
        assert.ok(sampled instanceof Int32Array && logprobs instanceof Float32Array)
        assert.ok(sampled.length >= 1 && sampled.length <= 8, `${sampled.length} ids of at most 8`)
        assert.equal(logprobs.length, sampled.length)
        assert.ok(
          logprobs.every((value) => value <= 0 && Number.isFinite(value)),
          'a log-probability is positive or not finite',
        )
        if (sampled.length < 8) assert.equal(stop, 'stop')
      }
    }),

    promise('a limit of one token gives one token', async (sampler) => {
      const sample = await one(sampler, { prompt: prompt(5, 2), maxTokens: 1 })
      assert.equal(sample.ids.length, 1)
    }),

    promise('sampled ids score the same as part of a prompt', async (sampler) => {
      const before = prompt(7, 3)
      const sample = await one(sampler, { prompt: before, maxTokens: 12 })
      near(
        sample.logprobs,
        await rescored(sampler, before, sample),
        tolerance,
        'sampled against rescored log-probabilities',
      )
    }),

    promise('a prompt has a log-probability at every position but the first', async (sampler) => {
      const values = await sampler.logprobs(prompt(9, 4))
      assert.ok(values instanceof Float32Array)
      assert.equal(values.length, 9)
      assert.ok(Number.isNaN(values[0]), 'nothing predicts position 0')
      assert.ok(values.slice(1).every((value) => value <= 0 && Number.isFinite(value)))
    }),

    promise('a prompt in pieces is the same prompt', async (sampler) => {
      const whole = ids(10, 5, vocabulary)
      const begun = tokenPrompt(whole.slice(0, 4))
      near(
        await sampler.logprobs(createPrompt([tokenChunk(whole.slice(4))], begun)),
        await sampler.logprobs(tokenPrompt(whole)),
        tolerance,
        'extended against whole',
      )
    }),

    promise('temperature 0 takes the likeliest token each time', async (sampler) => {
      const request = { prompt: prompt(6, 6), maxTokens: 8, temperature: 0 }
      const first = await one(sampler, request)
      assert.deepEqual((await one(sampler, request)).ids, first.ids)
      assert.deepEqual((await one(sampler, { ...request, temperature: 1, topK: 1 })).ids, first.ids)
    }),

    promise(
      'log-probabilities are those of the whole distribution at temperature 1, however it was sampled',
      async (sampler) => {
        const before = prompt(6, 7)
        const settings: readonly Partial<SampleRequest>[] = [
          { temperature: 0.5 },
          { temperature: 0 },
          { topK: 2 },
          { topP: 0.5 },
        ]
        for (const setting of settings) {
          const sample = await one(sampler, { prompt: before, maxTokens: 6, ...setting })
          near(
            sample.logprobs,
            await rescored(sampler, before, sample),
            tolerance,
            JSON.stringify(setting),
          )
        }
      },
      'untempered',
    ),

    promise(
      'a seeded sample depends on its request alone, also among strangers',
      async (sampler) => {
        const request = { prompt: prompt(6, 8), maxTokens: 10, seeds: [12_345] }
        const alone = await one(sampler, request)
        const strangers = Array.from({ length: 6 }, (_, index) =>
          one(sampler, { prompt: prompt(3 + index, 80 + index), maxTokens: 10 }),
        )
        const among = await one(sampler, request)
        await Promise.all(strangers)
        assert.deepEqual(among.ids, alone.ids)
        assert.deepEqual(among.logprobs, alone.logprobs)
      },
      'deterministic',
    ),

    promise(
      'each sample of a request has the seed given for it',
      async (sampler) => {
        const request = { prompt: prompt(6, 9), maxTokens: 12 }
        const [a, b, again] = await sampler.sample({ ...request, n: 3, seeds: [1, 2, 1] })
        assert.deepEqual(again!.ids, a!.ids)
        assert.deepEqual((await one(sampler, { ...request, seeds: [2] })).ids, b!.ids)
        const many = await sampler.sample({
          ...request,
          n: 8,
          seeds: [1, 2, 3, 4, 5, 6, 7, 4_294_967_295],
        })
        const distinct = new Set(many.map((sample) => sample.ids.join()))
        assert.ok(distinct.size > 1, 'eight seeds gave one sample')
      },
      'deterministic',
    ),

    promise('a stop token ends the sample and is part of it', async (sampler) => {
      const request = { prompt: prompt(6, 10), maxTokens: 8, temperature: 0 }
      const free = await one(sampler, request)
      const token = free.ids[free.ids.length >> 1]!
      const cut = await one(sampler, { ...request, stop: { tokens: [token], strings: [] } })
      assert.deepEqual(cut.ids, free.ids.slice(0, free.ids.indexOf(token) + 1))
      assert.equal(cut.stop, 'stop')
    }),

    promise('a sample that no stop ended says so', async (sampler) => {
      const free = await one(sampler, { prompt: prompt(6, 11), maxTokens: 3, temperature: 0 })
      const other = Array.from({ length: vocabulary }, (_, id) => id).find(
        (id) => !free.ids.includes(id),
      )!
      const again = await one(sampler, {
        prompt: prompt(6, 11),
        maxTokens: 3,
        temperature: 0,
        stop: { tokens: [other], strings: [] },
      })
      assert.equal(again.ids.length, 3)
      assert.equal(again.stop, 'length')
    }),

    promise(
      'a stop string ends the sample once its text is complete',
      async (sampler) => {
        assert.ok(decode !== undefined, 'give decode, or declare that stop strings are lacking')
        const request = { prompt: prompt(6, 12), maxTokens: 8, temperature: 0 }
        const free = await one(sampler, request)
        const text = decode(free.ids)
        const wanted = text.slice(text.length >> 1, (text.length >> 1) + 1)
        const cut = await one(sampler, { ...request, stop: { tokens: [], strings: [wanted] } })
        assert.ok(
          decode(cut.ids).includes(wanted),
          'the text of the stop string is part of the sample',
        )
        assert.ok(
          !decode(cut.ids.slice(0, -1)).includes(wanted),
          'the sample goes on after its stop string',
        )
        assert.equal(cut.stop, 'stop')
      },
      'stopStrings',
    ),

    promise('onTokens gives the tokens of each sample in order', async (sampler) => {
      const pieces: Int32Array[][] = [[], []]
      const scores: number[][] = [[], []]
      const samples = await sampler.sample({
        prompt: prompt(6, 13),
        maxTokens: 6,
        n: 2,
        onTokens(index, arrived, logprobs) {
          pieces[index]!.push(arrived.slice())
          scores[index]!.push(...logprobs)
        },
      })
      for (const [index, sample] of samples.entries()) {
        assert.deepEqual(concatIds(pieces[index]!), sample.ids)
        assert.deepEqual(Float32Array.from(scores[index]!), sample.logprobs)
      }
    }),

    promise('calls at the same time don’t mix', async (sampler) => {
      const prompts = Array.from({ length: 8 }, (_, index) => prompt(4 + index, 140 + index))
      const samples = await Promise.all(
        prompts.map((before) => one(sampler, { prompt: before, maxTokens: 5 })),
      )
      for (const [index, sample] of samples.entries()) {
        near(
          sample.logprobs,
          await rescored(sampler, prompts[index]!, sample),
          tolerance,
          `call ${index}`,
        )
      }
    }),

    promise(
      'an aborted call rejects with the signal’s reason and harms no other',
      async (sampler) => {
        const reason = new Error('enough')
        const stopped = new AbortController()
        const maxTokens = Math.min(256, sampler.contextWindow - 8)
        const aborted = sampler.sample(
          { prompt: prompt(6, 15), maxTokens },
          { signal: stopped.signal },
        )
        const other = one(sampler, { prompt: prompt(6, 16), maxTokens: 4 })
        stopped.abort(reason)
        await assert.rejects(aborted, (error) => error === reason)
        assert.ok((await other).ids.length > 0)
        await assert.rejects(
          sampler.sample({ prompt: prompt(6, 17), maxTokens: 4 }, { signal: stopped.signal }),
          (error) => error === reason,
        )
        await assert.rejects(
          sampler.logprobs(prompt(6, 18), { signal: stopped.signal }),
          (error) => error === reason,
        )
      },
    ),

    promise('a request that can’t be carried out is refused by a sentence', async (sampler) => {
      const fine = { prompt: prompt(4, 19), maxTokens: 4 }
      const codes = ['DATA', 'UNSUPPORTED', 'CONFIG']
      await refused(() => sampler.sample({ ...fine, maxTokens: 0 }), codes, 'no tokens')
      await refused(() => sampler.sample({ ...fine, n: 2, seeds: [1] }), codes, 'a seed too few')
      await refused(() => sampler.sample({ ...fine, prompt: tokenPrompt([]) }), codes, 'no prompt')
      await refused(() => sampler.sample({ ...fine, temperature: -1 }), codes, 'temperature −1')
      await refused(
        () => sampler.sample({ ...fine, prompt: prompt(sampler.contextWindow + 1, 20) }),
        codes,
        'a prompt longer than the context window',
      )
    }),

    promise(
      'topLogprobs gives the k likeliest at each position, likeliest first',
      async (sampler) => {
        assert.ok(sampler.topLogprobs !== undefined, 'topLogprobs is lacking and not declared')
        const before = prompt(6, 21)
        const rows = await sampler.topLogprobs(before, 3)
        const values = await sampler.logprobs(before)
        assert.equal(rows.length, 6)
        assert.deepEqual(rows[0], [])
        for (const [position, row] of rows.entries()) {
          if (position === 0) continue
          assert.equal(row.length, 3)
          const given = row.map(({ logprob }) => logprob)
          assert.deepEqual(
            given,
            given.toSorted((a, b) => b - a),
          )
          const here = row.find(({ id }) => id === promptIds(before)[position])
          if (here !== undefined)
            near([here.logprob], [values[position]!], tolerance, `position ${position}`)
        }
      },
      'topLogprobs',
    ),

    promise(
      'closing lets calls under way finish, refuses later ones, and may be repeated',
      async (sampler) => {
        const running = one(sampler, { prompt: prompt(6, 22), maxTokens: 4 })
        await sampler.close()
        await sampler.close()
        assert.ok((await running).ids.length > 0)
        const after = { prompt: prompt(6, 23), maxTokens: 4 }
        await refused(() => sampler.sample(after), ['STATE'], 'a call after close')
        await refused(() => sampler.logprobs(after.prompt), ['STATE'], 'logprobs after close')
      },
    ),
  ]
}

async function one(sampler: Sampler, request: SampleRequest): Promise<Sample> {
  const samples = await sampler.sample(request)
  assert.equal(samples.length, 1, 'one sample was asked for')
  return samples[0]!
}

function continued(before: RenderedPrompt, sample: Sample): RenderedPrompt {
  return tokenPrompt(concatIds([promptIds(before), sample.ids]))
}

/** log-probabilities that the sampler itself gives the sampled ids. */
async function rescored(
  sampler: Sampler,
  before: RenderedPrompt,
  sample: Sample,
): Promise<Float32Array> {
  return (await sampler.logprobs(continued(before, sample))).slice(before.length)
}
