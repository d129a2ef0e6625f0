import { DataError, type PromptChunk } from '@tiltyard/core'
import { z } from 'zod'

import {
  checkShape,
  fillUp,
  imageChunk,
  type Tensor,
  type TrainingRequest,
} from './training-request.ts'

const count = z.int().min(0)

const chunk = z.union([
  z.object({ type: z.literal('encoded_text'), tokens: z.array(z.int32()) }),
  z.object({
    type: z.literal('image'),
    data: z.base64(),
    format: z.string(),
    expected_tokens: count.nullish(),
  }),
  z.object({ type: z.enum(['image_asset_pointer', 'dmel']) }),
])

export const modelInput = z.object({ chunks: z.array(chunk) })

export function promptChunks(
  input: z.infer<typeof modelInput>,
  where: string,
): readonly PromptChunk[] {
  return input.chunks.map((each) => {
    if (each.type === 'encoded_text') return { type: 'tokens', ids: Int32Array.from(each.tokens) }
    if (each.type === 'image') {
      const data = Buffer.from(each.data, 'base64')
      return imageChunk(data, each.format, each.expected_tokens ?? undefined, where)
    }
    throw new DataError(`${where}: this server takes text and images, no ${each.type}`)
  })
}

const tensor = z.object({
  data: z.array(z.number()),
  dtype: z.enum(['float32', 'int64']),
  shape: z.array(count).nullish(),
  sparse_crow_indices: z.array(count).nullish(),
  sparse_col_indices: z.array(count).nullish(),
})

const trainingInput = z.object({
  data: z.array(
    z.object({ model_input: modelInput, loss_fn_inputs: z.record(z.string(), tensor) }),
  ),
  loss_fn: z.string(),
  loss_fn_config: z.record(z.string(), z.number()).nullish(),
})

const request = z.object({
  model_id: z.string(),
  seq_id: z.int().nullish(),
  forward_backward_input: trainingInput.optional(),
  forward_input: trainingInput.optional(),
})

/** The JSON form of clients before 0.25, for both calls. */
export function trainingRequestOfJson(value: unknown, forwardOnly: boolean): TrainingRequest {
  const given = request.parse(value)
  const input = given.forward_backward_input ?? given.forward_input
  if (input === undefined) throw new DataError('forward_backward_input is missing')
  return {
    modelId: given.model_id,
    seqId: given.seq_id ?? undefined,
    data: input.data.map(({ model_input, loss_fn_inputs }, index) => ({
      input: promptChunks(model_input, `datum ${index}`),
      inputs: new Map(
        Object.entries(loss_fn_inputs).map(([name, it]) => [
          name,
          tensorOf(it, `datum ${index}: ${name}`),
        ]),
      ),
    })),
    loss: input.loss_fn,
    config: new Map(Object.entries(input.loss_fn_config ?? {})),
    forwardOnly,
  }
}

function tensorOf(value: z.infer<typeof tensor>, where: string): Tensor {
  const { dtype, shape, sparse_crow_indices: starts, sparse_col_indices: columns } = value
  const data = dtype === 'float32' ? Float32Array.from(value.data) : Int32Array.from(value.data)
  if (starts != null) {
    return fillUp(data, Int32Array.from(starts), Int32Array.from(columns ?? []), shape ?? [], where)
  }
  return checkShape({ data, shape: shape ?? [data.length] }, where)
}

const stop = z.union([z.string(), z.array(z.string()), z.array(z.int())])

/** Bodies that name numbers beyond 2^53 are read with `readJson`, which leaves those as text. */
const big = z.union([z.int(), z.string().regex(/^\d+$/)])

const sampleRequest = z.object({
  num_samples: z.int().min(1).optional(),
  prompt: modelInput,
  sampling_params: z.object({
    max_tokens: z.int().min(1).nullish(),
    seed: big.nullish(),
    stop: stop.nullish(),
    temperature: z.number().min(0).nullish(),
    top_k: z.int().nullish(),
    top_p: z.number().min(0).max(1).nullish(),
  }),
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
  sampling_session_id: z.string().nullish(),
  seq_id: big.nullish(),
  prompt_logprobs: z.boolean().nullish(),
  topk_prompt_logprobs: count.nullish(),
  prompt_logprobs_last_n: z.int().min(1).nullish(),
  topk_sample_logprobs: count.nullish(),
  target_prompt_logprobs: z.unknown().optional(),
  prompt_alt_tokens_k: count.nullish(),
  record_stability_info: z.boolean().nullish(),
})
export type SampleBody = z.infer<typeof sampleRequest>

const createSession = z.object({
  tags: z.array(z.string()).nullish(),
  user_metadata: z.record(z.string(), z.unknown()).nullish(),
})

const createModel = z.object({
  session_id: z.string(),
  model_seq_id: count,
  base_model: z.string(),
  lora_config: z
    .object({
      rank: z.int().nullish(),
      seed: big.nullish(),
      train_unembed: z.boolean().nullish(),
      train_mlp: z.boolean().nullish(),
      train_attn: z.boolean().nullish(),
    })
    .nullish(),
  optimizer_config: z.object({ type: z.string() }).nullish(),
  user_metadata: z.record(z.string(), z.unknown()).nullish(),
})

const ordered = { model_id: z.string(), seq_id: z.int().nullish() }
const metadata = z.record(z.string(), z.string()).nullish()
const seconds = z.number().positive().nullish()

const optimStep = z.object({
  ...ordered,
  adam_params: z
    .object({
      learning_rate: z.number().nullish(),
      beta1: z.number().nullish(),
      beta2: z.number().nullish(),
      eps: z.number().nullish(),
      weight_decay: z.number().nullish(),
      grad_clip_norm: z.number().nullish(),
    })
    .nullish(),
  optimizer_params: z.unknown().optional(),
})

const saveWeights = z.object({
  ...ordered,
  path: z.string().nullish(),
  ttl_seconds: seconds,
  overwrite: z.boolean().nullish(),
  user_metadata: metadata,
})

const saveForSampler = z.object({
  ...ordered,
  path: z.string().nullish(),
  sampling_session_seq_id: count.nullish(),
  kind: z.string().nullish(),
  ttl_seconds: seconds,
  user_metadata: metadata,
})

const loadWeights = z.object({
  model_id: z.string().nullish(),
  seq_id: z.int().nullish(),
  session_id: z.string().nullish(),
  model_seq_id: count.nullish(),
  base_model: z.string().nullish(),
  path: z.string(),
  optimizer: z.boolean(),
  user_metadata: z.record(z.string(), z.unknown()).nullish(),
})

const createSampler = z.object({
  session_id: z.string(),
  sampling_session_seq_id: count,
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
})

export const bodies = {
  createSession,
  createModel,
  optimStep,
  saveWeights,
  saveForSampler,
  loadWeights,
  createSampler,
  sample: sampleRequest,
  modelId: z.object({ model_id: z.string() }),
  sessionId: z.object({ session_id: z.string() }),
  requestId: z.object({ request_id: z.string() }),
  tinkerPath: z.object({ tinker_path: z.string() }),
  ttl: z.object({ ttl_seconds: z.number().positive().nullable() }),
} as const

/**
 * Parses JSON whose `seq_id` and `seed` may exceed 2^53: such numbers become text, so that none is rounded into another. A quote inside
 * a string is escaped, so the pattern matches members only.
 */
export function readJson(text: string): unknown {
  return JSON.parse(text.replaceAll(/"(seq_id|seed)"(\s*:\s*)(\d{16,})/g, '"$1"$2"$3"'))
}
