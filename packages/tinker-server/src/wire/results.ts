import type { Sample, TokenLogprob } from '@tiltyard/core'

import { bytesOf } from './arrays.ts'
import {
  bytesField,
  doubleField,
  integerField,
  message,
  packedField,
  stringField,
} from './protobuf.ts'

/** A result that goes out as protobuf or as JSON, as the client accepts. */
export interface TypedResult {
  protobuf(): Uint8Array<ArrayBuffer>
  json(): object
}

/** log-probabilities of one datum's targets; `columns` is set for targets in two dimensions. */
export interface DatumOutput {
  readonly logprobs: Float32Array
  readonly columns?: number
}

const LABEL = 'ArrayRecord'
const FLOAT32 = 1

export function trainingResult(
  outputs: readonly DatumOutput[],
  metrics: Readonly<Record<string, number>>,
): TypedResult {
  return {
    protobuf: () =>
      message(
        stringField(1, LABEL),
        ...recordsOf(outputs).map((record) => bytesField(2, encodeRecord(record))),
        ...Object.entries(metrics).map(([name, value]) =>
          bytesField(3, message(stringField(1, name), doubleField(2, value))),
        ),
      ),
    json: () => ({
      loss_fn_output_type: LABEL,
      loss_fn_outputs: outputs.map(({ logprobs, columns }) => ({
        logprobs: {
          data: [...logprobs],
          dtype: 'float32',
          shape: columns === undefined ? [logprobs.length] : [logprobs.length / columns, columns],
        },
      })),
      metrics,
    }),
  }
}

/** Neighbours of equal width: a record has one trailing shape for all its data. */
function recordsOf(outputs: readonly DatumOutput[]): readonly (readonly DatumOutput[])[] {
  const records: DatumOutput[][] = []
  for (const output of outputs) {
    const last = records.at(-1)
    if (last !== undefined && last[0]!.columns === output.columns) last.push(output)
    else records.push([output])
  }
  return records
}

function encodeRecord(record: readonly DatumOutput[]): Uint8Array {
  const offsets = new BigInt64Array(record.length + 1)
  for (const [index, { logprobs }] of record.entries())
    offsets[index + 1] = offsets[index]! + BigInt(logprobs.byteLength)
  const columns = record[0]?.columns
  const batched = message(
    bytesField(1, message(...record.map(({ logprobs }) => bytesOf(logprobs)))),
    bytesField(2, bytesOf(offsets)),
    integerField(3, FLOAT32),
    packedField(4, columns === undefined ? [] : [columns]),
  )
  return message(
    stringField(1, LABEL),
    bytesField(2, message(stringField(1, 'logprobs'), bytesField(2, batched))),
    integerField(3, record.length),
  )
}

export interface SampleOutcome {
  readonly samples: readonly Sample[]
  /** NaN where there is none. */
  readonly promptLogprobs?: Float32Array
  readonly topk?: readonly (readonly TokenLogprob[])[]
}

export function sampleResult({ samples, promptLogprobs, topk }: SampleOutcome): TypedResult {
  return {
    protobuf: () =>
      message(
        ...samples.map(({ ids, logprobs, stop }) =>
          bytesField(
            1,
            message(
              integerField(1, stop === 'stop' ? 0 : 1),
              bytesField(2, bytesOf(ids)),
              bytesField(3, bytesOf(logprobs)),
            ),
          ),
        ),
        ...(promptLogprobs === undefined ? [] : [bytesField(2, bytesOf(promptLogprobs))]),
        ...(topk === undefined ? [] : [bytesField(3, encodeTopk(topk))]),
      ),
    json: () => ({
      type: 'sample',
      sequences: samples.map(({ ids, logprobs, stop }) => ({
        stop_reason: stop,
        tokens: [...ids],
        logprobs: [...logprobs],
      })),
      ...(promptLogprobs !== undefined && {
        prompt_logprobs: [...promptLogprobs].map((value) => (Number.isNaN(value) ? null : value)),
      }),
      ...(topk !== undefined && {
        topk_prompt_logprobs: topk.map((row) =>
          row.length === 0 ? null : row.map(({ id, logprob }) => [id, logprob]),
        ),
      }),
      prompt_cache_hit_tokens: 0,
    }),
  }
}

/** What fills up a row that has fewer than k entries. */
const UNUSED_LOGPROB = -99_999

function encodeTopk(rows: readonly (readonly TokenLogprob[])[]): Uint8Array {
  const k = rows.reduce((most, row) => Math.max(most, row.length), 0)
  const ids = new Int32Array(rows.length * k)
  const logprobs = new Float32Array(rows.length * k).fill(UNUSED_LOGPROB)
  for (const [position, row] of rows.entries())
    for (const [column, { id, logprob }] of row.entries()) {
      ids[position * k + column] = id
      logprobs[position * k + column] = logprob
    }
  return message(
    bytesField(1, bytesOf(ids)),
    bytesField(2, bytesOf(logprobs)),
    integerField(3, k),
    integerField(4, rows.length),
  )
}
