import { setMaxListeners } from 'node:events'

import { NotFoundError, StateError, asError, withDeadline } from '@tiltyard/core'

import { archiveFiles } from './archive.ts'
import { createCaller } from './caller.ts'
import { createCredentials } from './credentials.ts'
import { TinkerError } from './errors.ts'
import { createFutures, type Future } from './futures.ts'
import { createGate, type Gate } from './gate.ts'
import { checkTinkerOptions, type TinkerOptions } from './options.ts'
import { createRest, type TinkerRest } from './rest.ts'
import {
  createSamplingSession,
  type SamplingGates,
  type SamplingSession,
} from './sampling-session.ts'
import { createSessions, type Session } from './session.ts'
import { createTrainingModel, type TrainingModel } from './training-model.ts'
import { createTransport } from './transport.ts'

export interface CreateModelSettings {
  readonly baseModel: string
  /** The service wants a power of two, up to the model's maximum. */
  readonly rank: number
  readonly seed?: number
  /** Which parts get adapters. Default: all. */
  readonly trainMlp?: boolean
  readonly trainAttention?: boolean
  readonly trainUnembedding?: boolean
  readonly userMetadata?: Readonly<Record<string, string>>
}

/**
 * The service's own verbs, in its own terms. A session begins with the first model or sampler and ends with `close`; a program that
 * doesn't close it doesn't end. `tinkerBackend` is built on this.
 */
export interface TinkerClient {
  readonly rest: TinkerRest
  /** The id of the session, which begins if it hasn't. */
  session(): Promise<string>
  createModel(settings: CreateModelSettings): Promise<TrainingModel>
  /** A new model with the weights of a training checkpoint, and with its optimizer unless told otherwise. @throws NotFoundError */
  loadModel(path: string, settings?: { readonly optimizer?: boolean }): Promise<TrainingModel>
  /** Samples from a model as it is, or from saved weights. */
  samplingSession(
    of: { readonly baseModel: string } | { readonly modelPath: string },
  ): Promise<SamplingSession>
  /** Samples from weights that `openSampler` gave an id to. */
  openedSession(id: string): Promise<SamplingSession>
  /** Ends the session and every wait. Idempotent. */
  close(): Promise<void>
}

interface Parts {
  readonly session: Session
  readonly training: Gate
  readonly sampling: SamplingGates
}

export function tinkerClient(given: TinkerOptions): TinkerClient {
  const options = checkTinkerOptions(given)
  const { clock, deadlines } = options
  const transport = createTransport(options)
  const credentials = createCredentials(options)
  const closed = new AbortController()
  // As many calls as are under way listen to it.
  setMaxListeners(0, closed.signal)
  const caller = createCaller(options, transport, credentials, closed.signal)
  const sessions = createSessions(options, caller, credentials)
  const futures = createFutures(options, caller, credentials)
  let shared: Promise<Parts> | undefined
  let closing: Promise<void> | undefined

  const checkOpen = () => {
    if (closing !== undefined) throw new StateError('the client is closed')
  }

  const open = (): Promise<Parts> => {
    shared ??= sessions
      .open()
      .then((session) => ({
        session,
        training: createGate(session.flags.trainingBytes),
        sampling: {
          open: createGate(session.flags.samples),
          sending: createGate(options.limits.sending),
          bytes: createGate(session.flags.samplingBytes),
          pausedUntil: Number.NEGATIVE_INFINITY,
        },
      }))
      .catch((error: unknown) => {
        shared = undefined
        throw error
      })
    return shared
  }

  const rest = createRest(
    {
      ...caller,
      async send(call) {
        checkOpen()
        await sessions.flags()
        return caller.send(call)
      },
      async json(call) {
        checkOpen()
        await sessions.flags()
        return caller.json(call)
      },
    },
    (milliseconds) => clock.sleep(milliseconds, closed.signal),
    (place) => archiveFiles(place, transport, options, closed.signal),
  )

  const result = <T>(operation: string, type: string, future: Future, signal: AbortSignal) =>
    futures.result<T>(future, {
      operation,
      type,
      signal,
      decode: () => {
        throw new TinkerError('TINKER_FAILED', `${operation}: protobuf where JSON was due`, {
          operation,
        })
      },
      fromJson: (value: T) => value,
    })

  const training = <T>(operation: string, work: (signal: AbortSignal) => Promise<T>) =>
    withDeadline(work, {
      waitingFor: `the service to ${operation}`,
      milliseconds: deadlines.training,
      signal: closed.signal,
      clock,
    })

  const modelOf = ({ session, training: sending }: Parts, id: string, lastNumber = 0) =>
    createTrainingModel(
      { id, session, options, caller, futures, sending, signal: closed.signal },
      lastNumber,
    )

  const samplingOf = ({ session, sampling: gates }: Parts, id: string) =>
    createSamplingSession({ id, session, options, caller, futures, gates, signal: closed.signal })

  const create = async (parts: Parts, settings: CreateModelSettings) => {
    const operation = `create a model from ${settings.baseModel}`
    const { id: sessionId } = parts.session
    return training(operation, async (signal) => {
      const body = {
        session_id: sessionId,
        model_seq_id: parts.session.nextModel(),
        base_model: settings.baseModel,
        lora_config: {
          rank: settings.rank,
          ...(settings.seed !== undefined && { seed: settings.seed }),
          train_unembed: settings.trainUnembedding ?? true,
          train_mlp: settings.trainMlp ?? true,
          train_attn: settings.trainAttention ?? true,
        },
        ...(settings.userMetadata !== undefined && { user_metadata: settings.userMetadata }),
        type: 'create_model',
      }
      const future = await caller.json<Future>({
        operation,
        path: '/create_model',
        json: body,
        signal,
      })
      const { model_id: id } = await result<{ model_id: string }>(
        operation,
        'CreateModel',
        future,
        signal,
      )
      return id
    })
  }

  return {
    rest,
    async session() {
      checkOpen()
      return (await open()).session.id
    },
    async createModel(settings) {
      checkOpen()
      const parts = await open()
      return modelOf(parts, await create(parts, settings))
    },
    async loadModel(path, { optimizer = true } = {}) {
      checkOpen()
      const parts = await open()
      const info = await rest.weightsInfo(path)
      const operation = `load ${path}`
      const { session } = parts
      const fields = { path, optimizer, type: 'load_weights' }
      const load = async (body: object, signal: AbortSignal) => {
        const future = await caller.json<Future>({
          operation,
          path: '/load_weights',
          json: body,
          signal,
        })
        return result<{ model_id?: string | null }>(operation, 'LoadWeights', future, signal)
      }
      if (session.flags.createByLoading) {
        const number = session.nextModel()
        const made = await training(operation, (signal) =>
          load({ session_id: session.id, model_seq_id: number, ...fields }, signal),
        )
        return modelOf(parts, made.model_id ?? `${session.id}:train:${number}`)
      }
      const id = await create(parts, {
        baseModel: info.base_model,
        rank: info.lora_rank ?? 1,
        ...(info.train_mlp != null && { trainMlp: info.train_mlp }),
        ...(info.train_attn != null && { trainAttention: info.train_attn }),
        ...(info.train_unembed != null && { trainUnembedding: info.train_unembed }),
      })
      await training(operation, (signal) => load({ model_id: id, seq_id: 1, ...fields }, signal))
      return modelOf(parts, id, 1)
    },
    async samplingSession(of) {
      checkOpen()
      const parts = await open()
      const what = 'baseModel' in of ? of.baseModel : of.modelPath
      const operation = `open a sampler of ${what}`
      try {
        const { sampling_session_id: id } = await caller.json<{ sampling_session_id: string }>({
          operation,
          path: '/create_sampling_session',
          json: {
            session_id: parts.session.id,
            sampling_session_seq_id: parts.session.nextSampler(),
            ...('baseModel' in of ? { base_model: of.baseModel } : { model_path: of.modelPath }),
            type: 'create_sampling_session',
          },
          signal: closed.signal,
        })
        return samplingOf(parts, id)
      } catch (error) {
        if (!(error instanceof TinkerError) || error.status !== 404) throw error
        throw new NotFoundError(
          `${what} is not on this service, for this key; it may have been deleted, or its time may have run out`,
          { cause: error },
        )
      }
    },
    async openedSession(id) {
      checkOpen()
      return samplingOf(await open(), id)
    },
    close() {
      closing ??= (async () => {
        closed.abort(asError(new StateError('the client is closed')))
        await sessions.close()
        await transport.close()
      })()
      return closing
    },
  }
}
