import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { randomStream, type RandomStream } from '@tiltyard/core'

/** What may happen to a request on its way. */
const kinds = [
  'delayed',
  'reset before',
  'reset after',
  'cut',
  'stalled',
  'overtaken',
  'doubled',
  'status 408',
  'status 409',
  'status 429',
  'status 500',
  'status 503',
] as const

export type Fault = (typeof kinds)[number]

export interface FlakyProxy {
  readonly url: string
  readonly requests: number
  /** Faults so far. */
  readonly faults: number
  /** The kinds that requests of an operation have met. */
  met(operation: string): ReadonlySet<Fault>
  close(): Promise<void>
}

export interface FlakyProxyOptions {
  readonly target: string
  readonly seed: number
  /** Of the requests of an operation, which is the last part of their path, this part meets a fault. */
  readonly share: (operation: string) => number
}

const DELAY_MS = 60

/**
 * Passes requests on, and does to some of them what networks and busy services do. Which ones is drawn from the seed; those of an
 * operation meet all kinds of faults in turn, so that none is left out by chance.
 */
export async function flakyProxy({ target, seed, share }: FlakyProxyOptions): Promise<FlakyProxy> {
  const operations = new Map<string, ReturnType<typeof drawer>>()
  let requests = 0
  let faults = 0
  // Those that let the next one go first.
  let waiting: (() => void)[] = []

  const server = createServer((incoming, outgoing) => {
    requests += 1
    const operation = incoming.url!.split('/').at(-1)!
    if (!operations.has(operation))
      operations.set(operation, drawer(randomStream(seed, operation), share(operation)))
    const fault = operations.get(operation)!.draw()
    for (const go of waiting.splice(0)) setImmediate(go)
    if (fault !== undefined) faults += 1
    void bodyOf(incoming).then((body) => handle(incoming, outgoing, body, fault))
  })

  const forward = (incoming: IncomingMessage, body: Buffer) =>
    new Promise<{ readonly answer: IncomingMessage; readonly bytes: Buffer }>((resolve, reject) => {
      const { host: _, ...headers } = incoming.headers
      const sent = request(
        target + incoming.url,
        { method: incoming.method, headers: { ...headers, connection: 'close' }, agent: false },
        (answer) => {
          bodyOf(answer).then((bytes) => resolve({ answer, bytes }), reject)
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })

  const handle = async (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    body: Buffer,
    fault: Fault | undefined,
  ): Promise<void> => {
    try {
      if (fault === 'stalled') return
      if (fault === 'reset before') {
        outgoing.socket?.resetAndDestroy()
        return
      }
      if (fault?.startsWith('status') === true) {
        const detail = JSON.stringify({ detail: 'made up by the proxy' })
        outgoing.writeHead(Number(fault.slice(-3)), {
          'content-type': 'application/json',
          'content-length': detail.length,
        })
        outgoing.end(detail)
        return
      }
      if (fault === 'delayed') await pause(DELAY_MS)
      if (fault === 'overtaken')
        await Promise.race([new Promise<void>((resolve) => waiting.push(resolve)), pause(DELAY_MS)])
      const first = fault === 'doubled' ? await forward(incoming, body) : undefined
      const { answer, bytes } = await forward(incoming, body).catch((error: unknown) => {
        if (first !== undefined) return first
        throw error
      })
      if (fault === 'reset after') {
        outgoing.socket?.resetAndDestroy()
        return
      }
      outgoing.writeHead(answer.statusCode!, answer.headers)
      if (fault === 'cut' && bytes.length > 1) {
        outgoing.write(bytes.subarray(0, bytes.length >> 1))
        setTimeout(() => outgoing.socket?.resetAndDestroy(), 1)
        return
      }
      outgoing.end(bytes)
    } catch {
      outgoing.socket?.resetAndDestroy()
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return requests
    },
    get faults() {
      return faults
    },
    met: (operation) => operations.get(operation)?.met ?? new Set(),
    async close() {
      waiting = []
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** What the requests of one operation meet, one after the other. */
function drawer(random: RandomStream, share: number) {
  const order = random.shuffle(kinds)
  const met = new Set<Fault>()
  let count = 0
  return {
    met,
    draw() {
      if (random.next() >= share) return undefined
      const fault = order[count % order.length]!
      count += 1
      met.add(fault)
      return fault
    },
  }
}

async function bodyOf(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of stream) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
