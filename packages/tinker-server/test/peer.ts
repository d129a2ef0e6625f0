import type { Backend, Logger } from '@tiltyard/core'
import { bigramBackend } from '@tiltyard/testkit'

import { tinkerServer, type TinkerServer, type TinkerServerOptions } from '../src/index.ts'

interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly json: Record<string, unknown>
}

interface CallOptions {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** Someone who talks to a server in JSON, as clients before 0.25 did, without a socket. */
export interface Peer {
  readonly server: TinkerServer
  readonly log: readonly unknown[][]
  readonly call: (path: string, body?: unknown, options?: CallOptions) => Promise<Answered>
  /** Submits, and waits for what it comes to. */
  readonly done: (path: string, body: unknown) => Promise<Record<string, unknown>>
  readonly result: (requestId: unknown) => Promise<Record<string, unknown>>
  /** A session with a model in it; its calls are numbered by hand. */
  readonly model: (more?: object) => Promise<{ readonly session: string; readonly model: string }>
}

export function peer(
  options: Partial<TinkerServerOptions> = {},
  backend: Backend = bigramBackend(),
): Peer {
  const log: unknown[][] = []
  const write = (...line: unknown[]) => void log.push(line)
  const logger: Logger = { debug: write, info: write, warn: write, error: write }
  const server = tinkerServer({ backend, logger, ...options })
  const call: Peer['call'] = async (path, body, { method, headers = {}, signal } = {}) => {
    const response = await server.fetch(
      new Request(`http://server.test/api/v1${path}`, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { 'content-type': 'application/json', ...headers },
        ...(body !== undefined && {
          body:
            body instanceof Uint8Array
              ? Buffer.from(body)
              : typeof body === 'string'
                ? body
                : JSON.stringify(body),
        }),
        ...(signal !== undefined && { signal }),
      }),
    )
    const bytes = new Uint8Array(await response.arrayBuffer())
    const text = new TextDecoder().decode(bytes)
    return {
      status: response.status,
      headers: response.headers,
      bytes,
      json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {},
    }
  }
  const result: Peer['result'] = async (id) => {
    for (;;) {
      const { status, json } = await call('/retrieve_future', { request_id: id })
      if (status !== 408) return json
    }
  }
  return {
    server,
    log,
    call,
    result,
    async done(path, body) {
      const { status, json } = await call(path, body)
      return status === 200 ? result(json['request_id']) : { status, ...json }
    },
    async model(more = {}) {
      const session = (
        await call('/create_session', { tags: [], user_metadata: {}, sdk_version: '0.25.0' })
      ).json['session_id'] as string
      const submitted = await call('/create_model', {
        session_id: session,
        model_seq_id: 0,
        base_model: 'bigram',
        lora_config: { rank: 4, seed: 1 },
        ...more,
      })
      await result(submitted.json['request_id'])
      return { session, model: submitted.json['model_id'] as string }
    },
  }
}

/** A datum in JSON; arrays of floats or ids by name. */
export function datum(
  tokens: readonly number[],
  inputs: Readonly<Record<string, readonly number[]>>,
) {
  return {
    model_input: { chunks: [{ type: 'encoded_text', tokens }] },
    loss_fn_inputs: Object.fromEntries(
      Object.entries(inputs).map(([name, data]) => [
        name,
        { data, dtype: name === 'target_tokens' ? 'int64' : 'float32', shape: [data.length] },
      ]),
    ),
  }
}

export function forwardBackward(
  model: string,
  seqId: number | undefined,
  data: readonly object[],
  loss = 'cross_entropy',
  config?: object,
) {
  return {
    model_id: model,
    ...(seqId !== undefined && { seq_id: seqId }),
    forward_backward_input: {
      data,
      loss_fn: loss,
      ...(config !== undefined && { loss_fn_config: config }),
    },
  }
}

export const plain = datum([1, 2, 3], { target_tokens: [2, 3, 4], weights: [0, 1, 1] })

export function logprobsOf(result: Record<string, unknown>): readonly number[] {
  const outputs = result['loss_fn_outputs'] as readonly { logprobs: { data: readonly number[] } }[]
  return outputs.flatMap(({ logprobs }) => [...logprobs.data])
}
