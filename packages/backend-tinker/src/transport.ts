import { Agent, type Dispatcher } from 'undici'

import type { CheckedOptions } from './options.ts'

/** A body of known length that is made while it is sent, from the beginning each time. */
export interface StreamedBody {
  readonly length: number
  readonly pieces: () => Iterable<Uint8Array<ArrayBuffer>>
}

export type WireBody = string | Uint8Array | StreamedBody

export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: WireBody
  readonly signal: AbortSignal
  /** Waits for a result on the other side; kept apart, so that it holds up no short call. */
  readonly waits: boolean
}

export interface WireResponse {
  readonly status: number
  header(name: string): string | undefined
  readonly body: Uint8Array
}

export interface WireDownload {
  readonly status: number
  readonly body: AsyncIterable<Uint8Array>
}

/** Sends one request and reads its whole answer. Rejects only when there is none. Follows no redirect. */
export interface Transport {
  send(request: WireRequest): Promise<WireResponse>
  /** Gets what is at an address, as it arrives, with no header of ours. The signal ends it, also in the middle. */
  download(url: string, signal: AbortSignal): Promise<WireDownload>
  close(): Promise<void>
}

/** Iterables are bodies too; its types leave them out. */
type UndiciBody = Exclude<Dispatcher.RequestOptions['body'], undefined>
type FetchBody = string | Uint8Array<ArrayBuffer>

function isStreamed(body: WireBody | undefined): body is StreamedBody {
  return typeof body === 'object' && 'pieces' in body
}

/** Longer than any wait of the service for the next request on a connection would be pointless. */
const KEEP_ALIVE_MS = 60_000

export function createTransport({ fetch, dispatcher, limits }: CheckedOptions): Transport {
  if (fetch !== undefined) return fetchTransport(fetch)
  if (dispatcher !== undefined) return dispatcherTransport(dispatcher, dispatcher, async () => {})
  // The deadline of a request is its signal; undici's own would cut long polls.
  const settings = {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  }
  const calls = new Agent({ ...settings, connections: limits.connections })
  const waits = new Agent({ ...settings, connections: limits.samples })
  return dispatcherTransport(calls, waits, async () => {
    await Promise.all([calls.destroy(), waits.destroy()])
  })
}

function dispatcherTransport(
  calls: Dispatcher,
  polls: Dispatcher,
  close: () => Promise<void>,
): Transport {
  return {
    async send({ method, url, headers, body, signal, waits }) {
      const { origin, pathname, search } = new URL(url)
      const response = await (waits ? polls : calls).request({
        origin,
        path: pathname + search,
        method,
        headers: isStreamed(body) ? { ...headers, 'content-length': String(body.length) } : headers,
        body: (isStreamed(body) ? body.pieces() : (body ?? null)) as UndiciBody,
        signal,
      })
      return {
        status: response.statusCode,
        header(name) {
          const value = response.headers[name]
          return typeof value === 'string' ? value : value?.[0]
        },
        body: await response.body.bytes(),
      }
    },
    async download(url, signal) {
      const { origin, pathname, search } = new URL(url)
      const response = await polls.request({
        origin,
        path: pathname + search,
        method: 'GET',
        signal,
      })
      return { status: response.statusCode, body: response.body as AsyncIterable<Uint8Array> }
    },
    close,
  }
}

function fetchTransport(send: typeof fetch): Transport {
  return {
    async send({ method, url, headers, body, signal }) {
      const response = await send(url, {
        method,
        headers,
        signal,
        redirect: 'manual',
        // As a whole: not every fetch can send a stream whose length is known.
        ...(body !== undefined && {
          body: isStreamed(body) ? Buffer.concat([...body.pieces()]) : (body as FetchBody),
        }),
      })
      return {
        status: response.status,
        header: (name) => response.headers.get(name) ?? undefined,
        body: new Uint8Array(await response.arrayBuffer()),
      }
    },
    async download(url, signal) {
      const response = await send(url, { signal })
      return { status: response.status, body: response.body ?? nothing() }
    },
    async close() {},
  }
}

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}
