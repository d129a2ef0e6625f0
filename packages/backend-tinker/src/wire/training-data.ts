import {
  DataError,
  chunkLength,
  type Datum,
  type Loss,
  type LossName,
  type PromptChunk,
} from '@tiltyard/core'

/** An input of a loss. `Int32Array` travels as int64. */
export interface WireTensor {
  readonly data: Float32Array | Int32Array | BigInt64Array
  /** Default: one dimension. */
  readonly shape?: readonly number[]
}

/** A datum as the service has it: any loss, any inputs by name. */
export interface WireDatum {
  readonly input: readonly PromptChunk[]
  readonly lossInputs: Readonly<Record<string, WireTensor>>
}

/** A loss as the service has it. */
export interface WireLoss {
  readonly name: string
  readonly config?: Readonly<Record<string, number>>
}

export function wireLoss(loss: Loss): WireLoss {
  const { name } = loss
  if (name === 'ppo') return { name, config: bounds(loss.clipLow ?? 0.8, loss.clipHigh ?? 1.2) }
  // Always sent: services differ in what they take for granted.
  if (name === 'cispo') return { name, config: bounds(loss.clipLow ?? 0, loss.clipHigh ?? 4) }
  if (name === 'dro') return { name, config: { beta: loss.beta } }
  return { name }
}

function bounds(low: number, high: number) {
  return { clip_low_threshold: low, clip_high_threshold: high }
}

/**
 * The arrays that the loss reads, under the service's names. There is no mask on the wire: where a masked target has a weight or an
 * advantage it gets zero, which is the same; `dro` pulls such targets all the same, so there a mask is refused.
 */
export function wireDatum(datum: Datum, loss: LossName): WireDatum {
  const { input, targets, weights, logprobs, advantages, mask } = datum
  const masked = mask?.some((value) => value === 0) === true
  if (masked && loss === 'dro') {
    throw new DataError(
      'dro on this service pulls every target, also masked ones; use ppo or importance_sampling, or data without observations',
    )
  }
  const kept = (values: Float32Array) =>
    masked ? values.map((value, position) => (mask[position] === 0 ? 0 : value)) : values
  const lossInputs: Record<string, WireTensor> = { target_tokens: { data: targets } }
  if (loss === 'cross_entropy') lossInputs['weights'] = { data: kept(weights!) }
  else {
    lossInputs['logprobs'] = { data: logprobs! }
    lossInputs['advantages'] = { data: kept(advantages!) }
  }
  return { input, lossInputs }
}

/** Bytes that a datum takes, as the service's limit for one request counts them. */
function estimateBytes({ input, lossInputs }: WireDatum): number {
  let bytes = 0
  for (const chunk of input)
    bytes += chunk.type === 'tokens' ? 4 * chunkLength(chunk) : chunk.data.length
  for (const { data } of Object.values(lossInputs))
    bytes += data.length * (data instanceof Float32Array ? 4 : 8)
  return bytes
}

export interface ChunkLimits {
  readonly data: number
  readonly bytes: number
}

/** Cuts a batch into what goes into one request each, in order. A datum over the limit goes alone. */
export function cutBatch(
  batch: readonly WireDatum[],
  limits: ChunkLimits,
): readonly { readonly data: readonly WireDatum[]; readonly bytes: number }[] {
  const cut: { data: WireDatum[]; bytes: number }[] = []
  for (const datum of batch) {
    const bytes = estimateBytes(datum)
    const last = cut.at(-1)
    if (last === undefined || last.bytes + bytes > limits.bytes || last.data.length === limits.data)
      cut.push({ data: [datum], bytes })
    else {
      last.data.push(datum)
      last.bytes += bytes
    }
  }
  return cut
}
