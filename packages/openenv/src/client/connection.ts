import {
  asError,
  type Clock,
  type JsonObject,
  StateError,
  TiltyardError,
  withDeadline,
} from '@tiltyard/core'
import { WebSocket } from 'ws'
import { z } from 'zod'

import { MAX_FRAME_BYTES, type Observed } from '../wire/frames.ts'
import { isJsonObject, jsonObject } from '../wire/json.ts'

/** The server has no session free. Code `CAPACITY`. */
export class CapacityReached extends TiltyardError {
  constructor(message: string) {
    super('CAPACITY', message)
  }
}

const answerSchema = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('observation'),
    data: z.looseObject({
      observation: jsonObject.nullish(),
      reward: z.union([z.number(), z.boolean()]).nullish(),
      done: z.boolean().nullish(),
      metadata: jsonObject.nullish(),
    }),
  }),
  z.looseObject({ type: z.literal('state'), data: jsonObject }),
  z.looseObject({
    type: z.literal('error'),
    data: z.looseObject({ message: z.string().default(''), code: z.string().default('') }),
  }),
])

/** One environment of a server, for as long as it is open. */
export interface Connection {
  /**
   * Sends a frame and gives the observation that answers it. Calls are made one at a time.
   * @throws CapacityReached; TiltyardError `OPENENV` with the server's message and code; DeadlineError. After a deadline or an
   * abort the connection is closed: the protocol has no ids, and a late answer would be taken for the next one's.
   */
  ask(what: string, frame: JsonObject, signal: AbortSignal): Promise<Observed>
  /** Takes leave and closes. Idempotent. */
  close(): void
}

export interface ConnectOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly connectMs: number
  readonly messageMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

export async function connect(options: ConnectOptions): Promise<Connection> {
  const { url, headers, connectMs, messageMs, clock, signal } = options
  const socket = new WebSocket(url, { headers, maxPayload: MAX_FRAME_BYTES })
  const inbox = createInbox(socket)
  try {
    await withDeadline(() => inbox.opened, {
      waitingFor: `a connection to ${url.host}`,
      milliseconds: connectMs,
      signal,
      clock,
    })
  } catch (error) {
    socket.terminate()
    throw error
  }
  return {
    async ask(what, frame, askSignal) {
      if (socket.readyState !== socket.OPEN && !inbox.hasAnswer)
        throw asError(inbox.failure ?? new StateError(`the connection to ${url.host} is closed`))
      try {
        if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(frame))
        const text = await withDeadline(() => inbox.next(), {
          waitingFor: `${what} of ${url.host}`,
          milliseconds: messageMs,
          signal: askSignal,
          clock,
        })
        return readAnswer(text)
      } catch (error) {
        if (!TiltyardError.is(error, 'OPENENV')) socket.terminate()
        throw error
      }
    },
    close() {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: 'close' }))
      socket.close()
    },
  }
}

interface Inbox {
  readonly opened: Promise<void>
  readonly hasAnswer: boolean
  /** Why the socket is closed. */
  readonly failure: Error | undefined
  /** The next answer; rejects when the socket closes before. */
  next(): Promise<string>
}

function createInbox(socket: WebSocket): Inbox {
  const answers: string[] = []
  let failure: Error | undefined
  let waiting: { resolve: (text: string) => void; reject: (error: Error) => void } | undefined
  const fail = (error: Error) => {
    failure ??= error
    waiting?.reject(failure)
    waiting = undefined
  }
  const opened = new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  opened.catch(() => {})
  socket.on('message', (data) => {
    const text = (data as Buffer).toString('utf8')
    if (waiting === undefined) answers.push(text)
    else waiting.resolve(text)
    waiting = undefined
  })
  socket.on('error', fail)
  socket.on('close', (code) =>
    fail(new TiltyardError('OPENENV_CLOSED', `the server closed the connection (code ${code})`)),
  )
  return {
    opened,
    get hasAnswer() {
      return answers.length > 0
    },
    get failure() {
      return failure
    },
    next() {
      const held = answers.shift()
      if (held !== undefined) return Promise.resolve(held)
      if (failure !== undefined) return Promise.reject(failure)
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject }
      })
    },
  }
}

function readAnswer(text: string): Observed {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw new TiltyardError('OPENENV_WIRE', 'the server answered with something that is no JSON', {
      cause: error,
    })
  }
  const checked = answerSchema.safeParse(parsed)
  if (!checked.success)
    throw new TiltyardError('OPENENV_WIRE', 'the server answered with an unknown frame', {
      cause: checked.error,
    })
  const answer = checked.data
  if (answer.type === 'error') {
    const { message, code } = answer.data
    if (code === 'CAPACITY_REACHED') throw new CapacityReached(message)
    throw new TiltyardError('OPENENV', `the environment answered ${code}: ${message}`, {
      details: { code },
    })
  }
  if (answer.type === 'state') return { observation: answer.data, reward: null, done: false }
  const { observation, reward, done, metadata } = answer.data
  const nested = observation?.['metadata']
  const facts = metadata ?? (isJsonObject(nested) ? nested : undefined)
  return {
    observation: observation ?? {},
    reward: reward === undefined || reward === null ? null : Number(reward),
    done: done ?? false,
    ...(facts === undefined ? {} : { metadata: facts }),
  }
}
