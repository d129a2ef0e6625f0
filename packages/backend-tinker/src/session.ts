import { asError } from '@tiltyard/core'

import type { Caller } from './caller.ts'
import type { Credentials } from './credentials.ts'
import { TinkerError } from './errors.ts'
import { PROTOCOL_VERSION, type CheckedOptions } from './options.ts'
import type { ChunkLimits } from './wire/training-data.ts'

/** What the service says of itself at the start. Absent flags have their defaults. */
interface ServiceFlags {
  readonly chunk: ChunkLimits
  /** Parts of a batch may be sent at the same time. */
  readonly parallelChunks: boolean
  /** Bytes of training data being sent at the same time. */
  readonly trainingBytes: number
  /** Bytes of prompts being sent at the same time, by the estimate of 10 a token. */
  readonly samplingBytes: number
  readonly samples: number
  /** A model can be made from a checkpoint in one call. */
  readonly createByLoading: boolean
  /** A sample that nobody waits for any more can be called off. */
  readonly cancel: boolean
}

/** A session: what makes models and samplers belong to one program. */
export interface Session {
  readonly id: string
  readonly flags: ServiceFlags
  /** Numbers that the service wants from its client, each given once. */
  nextModel(): number
  nextSampler(): number
}

export interface Sessions {
  /** Begins at the first call; the same for all later ones. */
  open(): Promise<Session>
  /** The flags alone, without a session. */
  flags(): Promise<ServiceFlags>
  close(): Promise<void>
}

const HEARTBEAT_MS = 10_000
const HEARTBEAT_TIMEOUT_MS = 10_000
/** Without a heartbeat for so long the service may end the session. */
const SILENCE_MS = 120_000
const GOODBYE_MS = 2_000

interface ConfigAnswer {
  readonly pjwt_auth_enabled?: boolean
  readonly parallel_fwdbwd_chunks?: boolean
  readonly fwdbwd_max_chunk_len?: number
  readonly fwdbwd_max_chunk_bytes_count?: number
  readonly fwdbwd_dispatch_bytes_semaphore_size?: number
  readonly sample_dispatch_bytes_semaphore_size?: number
  readonly sample_max_concurrent_requests?: number
  readonly create_model_via_load_weights?: boolean
}

interface SessionAnswer {
  readonly session_id: string
  readonly info_message?: string | null
  readonly warning_message?: string | null
  readonly error_message?: string | null
}

export function createSessions(
  options: CheckedOptions,
  caller: Caller,
  credentials: Credentials,
): Sessions {
  const { clock, logger, deadlines } = options
  const stopped = new AbortController()
  let opening: Promise<Session> | undefined
  let begun: string | undefined
  let reading: Promise<ServiceFlags> | undefined

  const version = { sdk_version: PROTOCOL_VERSION }

  const readFlags = async (): Promise<ServiceFlags> => {
    const config = await optional<ConfigAnswer>({
      operation: 'ask the service for its settings',
      path: '/client/config',
      json: version,
    })
    if (config.pjwt_auth_enabled === true) {
      credentials.exchangeWith(async (key) => {
        const { jwt } = await caller.json<{ jwt: string }>({
          operation: 'exchange the key for a token',
          path: '/auth/token',
          json: {},
          credential: key,
        })
        return jwt
      })
    }
    const dynamic = await optional<{ readonly sample_cancel_enabled?: boolean }>({
      operation: 'ask the service for its present settings',
      path: '/client/dynamic_config',
      json: version,
    })
    return {
      chunk: {
        data: config.fwdbwd_max_chunk_len ?? 1_024,
        bytes: config.fwdbwd_max_chunk_bytes_count ?? 5_000_000,
      },
      parallelChunks: config.parallel_fwdbwd_chunks ?? true,
      trainingBytes: config.fwdbwd_dispatch_bytes_semaphore_size ?? 50_000_000,
      samplingBytes: config.sample_dispatch_bytes_semaphore_size ?? 10 * 1024 * 1024,
      samples: Math.min(
        options.limits.samples,
        config.sample_max_concurrent_requests ?? Number.POSITIVE_INFINITY,
      ),
      createByLoading: config.create_model_via_load_weights ?? false,
      cancel: dynamic.sample_cancel_enabled ?? false,
    }
  }

  /** Older services lack these calls. */
  const optional = async <T extends object>(call: {
    readonly operation: string
    readonly path: string
    readonly json: unknown
  }): Promise<Partial<T>> => {
    try {
      return await caller.json<T>(call)
    } catch (error) {
      if (error instanceof TinkerError && error.status === 404) return {}
      throw error
    }
  }

  const flags = () => {
    reading ??= readFlags().catch((error: unknown) => {
      reading = undefined
      throw error
    })
    return reading
  }

  const begin = async (): Promise<Session> => {
    const settings = await flags()
    const answer = await caller.json<SessionAnswer>({
      operation: 'begin a session',
      path: '/create_session',
      json: {
        tags: options.tags,
        user_metadata: options.userMetadata,
        ...version,
        ...(options.projectId !== undefined && { project_id: options.projectId }),
        type: 'create_session',
      },
    })
    for (const level of ['info', 'warning', 'error'] as const) {
      const said = answer[`${level}_message`]
      if (said != null) logger[level === 'warning' ? 'warn' : level](credentials.scrub(said))
    }
    begun = answer.session_id
    void beat(begun)
    let models = 0
    let samplers = 0
    return {
      id: answer.session_id,
      flags: settings,
      nextModel: () => models++,
      nextSampler: () => samplers++,
    }
  }

  /** Tells the service that the session is in use, until it is closed or over. Never throws. */
  const beat = async (id: string) => {
    let heard = clock.now()
    for (;;) {
      try {
        await clock.sleep(HEARTBEAT_MS, stopped.signal)
      } catch {
        return
      }
      try {
        const { status } = await caller.send({
          operation: 'keep the session alive',
          path: '/session_heartbeat',
          body: JSON.stringify({ session_id: id, type: 'session_heartbeat' }),
          timeout: HEARTBEAT_TIMEOUT_MS,
          retries: 0,
          signal: stopped.signal,
          handles: [404, 410],
        })
        if (status === 404 || status === 410) {
          if (!stopped.signal.aborted)
            logger.error('the session is over; what it held is gone except for checkpoints', {
              session: id,
            })
          return
        }
        heard = clock.now()
      } catch {
        if (stopped.signal.aborted) return
        const silentMs = Math.round(clock.now() - heard)
        if (silentMs > SILENCE_MS)
          logger.warn('the service has not heard from this session; it may end it', {
            session: id,
            silentMs,
          })
      }
    }
  }

  return {
    flags,
    open() {
      opening ??= begin().catch((error: unknown) => {
        opening = undefined
        throw error
      })
      return opening
    },
    async close() {
      if (stopped.signal.aborted) return
      stopped.abort(asError('the client is closed'))
      if (begun === undefined) return
      // Politeness only: a service that doesn't hear it ends the session by itself.
      await caller
        .send({
          operation: 'end the session',
          path: `/sessions/${begun}/finish`,
          body: JSON.stringify({ reason: { type: 'success' } }),
          timeout: Math.min(GOODBYE_MS, deadlines.request),
          retries: 0,
          signal: new AbortController().signal,
        })
        .catch(() => undefined)
    },
  }
}
