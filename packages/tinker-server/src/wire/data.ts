import { DataError, checkDatum, type Datum, type Loss } from '@tiltyard/core'

import type { DatumOutput } from './results.ts'
import type { Tensor, TrainingRequest, WireDatum } from './training-request.ts'

/** A request as data and loss of the contracts, and the way back for its results. */
export interface Batch {
  readonly data: readonly Datum[]
  readonly loss: Loss
  /** Puts log-probabilities of `data` together as outputs of the request's data. */
  readonly outputs: (logprobs: readonly Float32Array[]) => readonly DatumOutput[]
}

/** Targets in two dimensions become as many data; a bound keeps one datum from becoming a million. */
const MAX_COLUMNS = 256

const inputNames: Readonly<Record<Loss['name'], readonly string[]>> = {
  cross_entropy: ['target_tokens', 'weights'],
  importance_sampling: ['target_tokens', 'logprobs', 'advantages'],
  ppo: ['target_tokens', 'logprobs', 'advantages'],
  cispo: ['target_tokens', 'logprobs', 'advantages'],
  dro: ['target_tokens', 'logprobs', 'advantages'],
}

/** @throws DataError that names the datum and what is wrong with it. */
export function batchOf(request: TrainingRequest): Batch {
  const loss = lossOf(request)
  if (request.data.length === 0) throw new DataError('no data given')
  const columns = request.data.map((datum, index) => columnsOf(datum, loss, index))
  return {
    loss,
    data: columns.flat(),
    outputs(logprobs) {
      let at = 0
      return columns.map((each, index) => {
        const parts = logprobs.slice(at, at + each.length)
        at += each.length
        const flat = request.data[index]!.inputs.get('target_tokens')!.shape.length === 1
        return flat ? { logprobs: parts[0]! } : interleaved(parts)
      })
    },
  }
}

function lossOf({ loss, config }: TrainingRequest): Loss {
  const rest = new Map(config)
  const take = (name: string) => {
    const value = rest.get(name)
    rest.delete(name)
    return value
  }
  const made = ((): Loss => {
    switch (loss) {
      case 'cross_entropy':
      case 'importance_sampling':
        return { name: loss }
      case 'ppo':
      case 'cispo': {
        const clipLow = take('clip_low_threshold')
        const clipHigh = take('clip_high_threshold')
        return {
          name: loss,
          ...(clipLow !== undefined && { clipLow }),
          ...(clipHigh !== undefined && { clipHigh }),
        }
      }
      case 'dro': {
        const beta = take('beta')
        if (beta === undefined) throw new DataError('dro needs beta in loss_fn_config')
        return { name: 'dro', beta }
      }
      default:
        throw new DataError(
          `no loss "${loss}" here; there is ${Object.keys(inputNames).join(', ')}`,
        )
    }
  })()
  const [unknown] = rest.keys()
  if (unknown !== undefined) throw new DataError(`${loss} has no setting ${unknown}`)
  return made
}

function columnsOf({ input, inputs }: WireDatum, loss: Loss, index: number): readonly Datum[] {
  const where = `datum ${index}`
  const names = inputNames[loss.name]
  for (const name of names)
    if (!inputs.has(name)) throw new DataError(`${where}: ${loss.name} needs ${name}`)
  for (const name of inputs.keys())
    if (!names.includes(name))
      throw new DataError(`${where}: ${loss.name} has no input ${name}; it has ${names.join(', ')}`)
  const targets = inputs.get('target_tokens')!
  if (targets.data instanceof Float32Array)
    throw new DataError(`${where}: target_tokens are float32; token ids are int64`)
  const width = targets.shape.length === 2 ? targets.shape[1]! : 1
  if (width > 1 && loss.name !== 'cross_entropy')
    throw new DataError(`${where}: ${loss.name} takes targets in one dimension`)
  if (width < 1 || width > MAX_COLUMNS)
    throw new DataError(`${where}: ${width} targets a position; 1 to ${MAX_COLUMNS} can be`)
  return Array.from({ length: width }, (_, column) => {
    const values = (name: string) =>
      floats(pick(inputs.get(name)!, targets, column, `${where}: ${name}`))
    const datum: Datum = {
      input,
      targets: Int32Array.from(pick(targets, targets, column, where)),
      ...(loss.name === 'cross_entropy'
        ? { weights: values('weights') }
        : { logprobs: values('logprobs'), advantages: values('advantages') }),
    }
    try {
      checkDatum(datum, loss)
    } catch (error) {
      throw new DataError(`${where}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      })
    }
    return datum
  })
}

/** One column of a tensor that has the shape of the targets. */
function pick(
  { data, shape }: Tensor,
  targets: Tensor,
  column: number,
  where: string,
): Float32Array | Int32Array {
  if (shape.length !== targets.shape.length || shape.some((size, at) => size !== targets.shape[at]))
    throw new DataError(
      `${where} is ${shape.join(' × ')}, target_tokens is ${targets.shape.join(' × ')}`,
    )
  if (shape.length === 1) return data
  const width = shape[1]!
  return data.filter((_, at) => at % width === column)
}

function floats(values: Float32Array | Int32Array): Float32Array {
  return values instanceof Float32Array ? values : Float32Array.from(values)
}

function interleaved(columns: readonly Float32Array[]): DatumOutput {
  const rows = columns[0]!.length
  const logprobs = new Float32Array(rows * columns.length)
  for (const [column, values] of columns.entries())
    for (const [row, value] of values.entries()) logprobs[row * columns.length + column] = value
  return { logprobs, columns: columns.length }
}
