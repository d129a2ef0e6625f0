import { createPrompt, tokenChunk, type Datum, type RenderedPrompt } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import type { StreamedBody } from '../src/transport.ts'
import {
  decodeForwardBackwardOutput,
  encodeForwardBackward,
  forwardBackwardOutputOfJson,
} from '../src/wire/forward-backward.ts'
import { joinOutputs } from '../src/wire/metrics.ts'
import {
  decodeSampleAnswer,
  encodeSampleCall,
  promptJson,
  sampleAnswerOfJson,
} from '../src/wire/sampling.ts'
import { cutBatch, wireDatum, wireLoss, type WireDatum } from '../src/wire/training-data.ts'

const answer = (count: number, metrics: Record<string, number>) => ({
  outputs: Array.from({ length: count }, () => ({})),
  metrics,
})

const sizes = (data: readonly WireDatum[]) =>
  cutBatch(data, { data: 1_024, bytes: 5_000_000 }).map((part) => part.data.length)

const ofBytes = (size: number): WireDatum => ({
  input: [tokenChunk(new Int32Array(size / 4))],
  lossInputs: {},
})

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'))

const datum: Datum = {
  input: [tokenChunk([1, 2, 3])],
  targets: Int32Array.of(2, 3, 4),
  weights: Float32Array.of(0, 1, 1),
}

const wholeOf = ({ pieces }: StreamedBody) => Buffer.concat([...pieces()])

// Bytes of the official encoder (tinker-protocol.md §11.4).
describe('#37 requests equal those of the official encoder, byte for byte', () => {
  test('a forward of one datum', () => {
    const encoded = encodeForwardBackward({
      modelId: '11111111-2222-3333-4444-555555555555:train:0',
      seqId: 3,
      data: [wireDatum(datum, 'cross_entropy')],
      loss: { name: 'cross_entropy' },
      forwardOnly: true,
    })
    expect(hex(wholeOf(encoded))).toBe(
      '0a2c31313131313131312d323232322d333333332d343434342d3535353535353535353535353a747261696e3a3010031a640a100a0e0a0c01000000020000000300000012300a0d7461726765745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e0a077765696768747312130a0c000000000000803f0000803f1801220103220d63726f73735f656e74726f70793001',
    )
  })

  test('the settings of a loss', () => {
    const encoded = encodeForwardBackward({
      modelId: '',
      seqId: 0,
      data: [],
      loss: wireLoss({ name: 'ppo', clipLow: 0.9, clipHigh: 1.1 }),
      forwardOnly: false,
    })
    expect(hex(wholeOf(encoded))).toBe(
      '220370706f2a1d0a12636c69705f6c6f775f7468726573686f6c6411cdccccccccccec3f2a1e0a13636c69705f686967685f7468726573686f6c64119a9999999999f13f',
    )
  })

  test('text and an image', () => {
    const encoded = encodeForwardBackward({
      modelId: 'm:train:0',
      seqId: 1,
      data: [
        wireDatum(
          {
            input: [
              tokenChunk([7]),
              {
                type: 'image',
                format: 'png',
                data: Uint8Array.of(0x89, 0x50, 0x4e, 0x47),
                tokens: 2,
              },
            ],
            targets: Int32Array.of(1, 2, 3),
            weights: Float32Array.of(1, 0, 1),
          },
          'cross_entropy',
        ),
      ],
      loss: { name: 'cross_entropy' },
      forwardOnly: false,
    })
    expect(hex(wholeOf(encoded))).toBe(
      '0a096d3a747261696e3a3010011a6d0a080a060a04070000000a0f120d0a0489504e471203706e67180212300a0d7461726765745f746f6b656e73121f0a180100000000000000020000000000000003000000000000001802220103121e0a077765696768747312130a0c0000803f000000000000803f1801220103220d63726f73735f656e74726f7079',
    )
  })
})

test('a large request is made piece by piece, the same again for each try, and tells its length before', () => {
  const count = 30_000
  const long: Datum = {
    input: [tokenChunk(Int32Array.from({ length: count }, (_, index) => index))],
    targets: Int32Array.from({ length: count }, (_, index) => (index % 2 === 0 ? index : -index)),
    weights: Float32Array.from({ length: count }, (_, index) => index / 7),
  }
  const body = encodeForwardBackward({
    modelId: 'm:train:0',
    seqId: 1,
    data: [wireDatum(long, 'cross_entropy'), wireDatum(datum, 'cross_entropy')],
    loss: { name: 'cross_entropy' },
    forwardOnly: false,
  })
  const pieces = [...body.pieces()]
  expect(pieces.map(({ length }) => length)).toEqual([262_144, body.length - 262_144])
  expect(Buffer.concat([...body.pieces()]).equals(Buffer.concat(pieces))).toBe(true)
  // Each array lies in the bytes as it lies in memory.
  const whole = Buffer.concat(pieces)
  const targets = Buffer.from(BigInt64Array.from(long.targets, BigInt).buffer)
  for (const array of [Buffer.from(long.weights!.buffer), targets])
    expect(whole.includes(array)).toBe(true)
})

describe('results', () => {
  test('vector 5: log-probabilities of two data and a metric', () => {
    const { outputs, metrics } = decodeForwardBackwardOutput(
      bytes(
        '0a0f546f7263684c6f737352657475726e12530a0f546f7263684c6f737352657475726e123e0a086c6f6770726f627312320a14000000bf000080be000080bf000000c0000080c0121800000000000000000c000000000000001400000000000000180118021a130a086c6f73733a73756d110000000000000440',
      ),
    )
    expect(outputs.map((output) => [...output['logprobs']!.data])).toEqual([
      [-0.5, -0.25, -1],
      [-2, -4],
    ])
    expect(outputs[0]!['logprobs']!.shape).toEqual([3])
    expect(metrics).toEqual({ 'loss:sum': 2.5 })
  })

  test('vector 6: two samples and the log-probabilities of their prompt', () => {
    const decoded = decodeSampleAnswer(
      bytes(
        '0a14120805000000060000001a08000000bf000080be0a160801120807000000080000001a08000080bf000000c0120c0000c07f0000a0bf000000bf',
      ),
    )
    expect(decoded.samples.map(({ ids, stop }) => [[...ids], stop])).toEqual([
      [[5, 6], 'stop'],
      [[7, 8], 'length'],
    ])
    expect([...decoded.samples[1]!.logprobs]).toEqual([-1, -2])
    expect([...decoded.promptLogprobs!]).toEqual([Number.NaN, -1.25, -0.5])
  })

  test('unknown fields are passed over, a cut message is an error', () => {
    const known = '0a14120805000000060000001a08000000bf000080be'
    expect(decodeSampleAnswer(bytes(`f80601${known}ba3e0161`)).samples).toHaveLength(1)
    expect(() => decodeSampleAnswer(bytes(known.slice(0, -4)))).toThrow(RangeError)
  })

  test('JSON of older services says the same', () => {
    const sampled = sampleAnswerOfJson({
      sequences: [{ stop_reason: 'stop', tokens: [21, 22], logprobs: [-0.5, -0.25] }],
      prompt_logprobs: [null, -1.25],
      topk_prompt_logprobs: [null, [[12, -1.25]]],
    })
    expect([...sampled.samples[0]!.ids]).toEqual([21, 22])
    expect([...sampled.promptLogprobs!]).toEqual([Number.NaN, -1.25])
    expect(sampled.topkPromptLogprobs).toEqual([[], [{ id: 12, logprob: -1.25 }]])
    const trained = forwardBackwardOutputOfJson({
      loss_fn_outputs: [{ logprobs: { data: [-1.5], dtype: 'float32', shape: [1] } }],
      metrics: { 'loss:sum': 1.5 },
    })
    expect([...trained.outputs[0]!['logprobs']!.data]).toEqual([-1.5])
  })
})

describe('requests', () => {
  test('what a prompt’s first handle brings is a chunk of its own, the rest is one', () => {
    const chunks = (prompt: RenderedPrompt) =>
      (JSON.parse(promptJson(prompt)) as { chunks: { tokens: number[] }[] }).chunks.map(
        ({ tokens }) => tokens,
      )
    const root = createPrompt([tokenChunk([1]), tokenChunk([2])])
    const asked = createPrompt([tokenChunk([3])], root)
    const answered = createPrompt([tokenChunk([4, 5]), tokenChunk([6])], asked)
    expect(chunks(root)).toEqual([[1, 2]])
    expect(chunks(asked)).toEqual([[1, 2], [3]])
    expect(chunks(answered)).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ])
    expect(chunks(createPrompt([tokenChunk([7])], createPrompt([])))).toEqual([[7]])
  })

  test('a sample call is JSON with its prompt straight from the ids', () => {
    const text = encodeSampleCall({
      samplingSessionId: 's:sample:1',
      seqId: 4,
      prompt: promptJson(
        createPrompt([
          tokenChunk([11, 12]),
          { type: 'image', format: 'png', data: Uint8Array.of(1, 2), tokens: 3 },
        ]),
      ),
      numSamples: 2,
      maxTokens: 8,
      seed: 4_294_967_295,
      stop: [7],
    })
    expect(JSON.parse(text)).toEqual({
      type: 'sample',
      sampling_session_id: 's:sample:1',
      seq_id: 4,
      num_samples: 2,
      sampling_params: {
        max_tokens: 8,
        temperature: 1,
        top_k: -1,
        top_p: 1,
        seed: 4_294_967_295,
        stop: [7],
      },
      prompt_logprobs: false,
      topk_prompt_logprobs: 0,
      prompt: {
        chunks: [
          { type: 'encoded_text', tokens: [11, 12] },
          { type: 'image', format: 'png', expected_tokens: 3, data: 'AQI=' },
        ],
      },
    })
  })

  test('both bounds of a clipped loss are always sent', () => {
    expect(wireLoss({ name: 'cispo' }).config).toEqual({
      clip_low_threshold: 0,
      clip_high_threshold: 4,
    })
    expect(wireLoss({ name: 'ppo', clipHigh: 1.3 }).config).toEqual({
      clip_low_threshold: 0.8,
      clip_high_threshold: 1.3,
    })
    expect(wireLoss({ name: 'dro', beta: 0.05 }).config).toEqual({ beta: 0.05 })
  })

  test('a mask becomes zero advantages, except where zero still pulls', () => {
    const masked: Datum = {
      input: [tokenChunk([1, 2])],
      targets: Int32Array.of(2, 3),
      logprobs: Float32Array.of(-1, -1),
      advantages: Float32Array.of(1, 1),
      mask: Float32Array.of(0, 1),
    }
    const { lossInputs } = wireDatum(masked, 'ppo')
    expect([...lossInputs['advantages']!.data]).toEqual([0, 1])
    expect(Object.keys(lossInputs)).toEqual(['target_tokens', 'logprobs', 'advantages'])
    expect(() => wireDatum(masked, 'dro')).toThrow('dro')
    expect(() => wireDatum({ ...masked, mask: Float32Array.of(1, 1) }, 'dro')).not.toThrow()
  })
})

describe('#47 a batch is cut as the service wants it', () => {
  test('at 1,024 data', () => {
    expect(sizes(Array.from({ length: 2_050 }, () => ofBytes(4)))).toEqual([1_024, 1_024, 2])
  })

  test('at five million bytes, counted before a datum is added; a larger one goes alone', () => {
    expect(sizes([ofBytes(3_000_000), ofBytes(2_000_000), ofBytes(4)])).toEqual([2, 1])
    expect(sizes([ofBytes(4), ofBytes(8_000_000), ofBytes(4)])).toEqual([1, 1, 1])
  })

  test('bytes are those of tokens and arrays', () => {
    const [part] = cutBatch([wireDatum(datum, 'cross_entropy')], { data: 9, bytes: 9 })
    expect(part!.bytes).toBe(3 * 4 + 3 * 8 + 3 * 4)
  })
})

describe('#47 the answers to a cut batch are joined', () => {
  test('by what each metric’s name says', () => {
    const { outputs, metrics } = joinOutputs([
      answer(1, { 'a:sum': 1, 'b:mean': 1, 'c:min': 1, 'd:max': 1, 'e:slack': 1, 'f:unique': 1 }),
      answer(3, { 'a:sum': 2, 'b:mean': 5, 'c:min': 2, 'd:max': 2, 'e:slack': 5, 'f:unique': 7 }),
    ])
    expect(outputs).toHaveLength(4)
    expect(metrics).toEqual({
      'a:sum': 3,
      'b:mean': 4,
      'c:min': 1,
      'd:max': 2,
      'e:slack': 1,
      'f:unique': 1,
      'f:unique_1': 7,
    })
  })

  test('what a part lacks, or nobody knows how to join, is left out', () => {
    const { metrics } = joinOutputs([
      answer(1, { 'a:sum': 1, 'h:hash2': 3, 'only:sum': 1 }),
      answer(1, { 'a:sum': 2, 'h:hash2': 4 }),
    ])
    expect(metrics).toEqual({ 'a:sum': 3 })
  })
})
