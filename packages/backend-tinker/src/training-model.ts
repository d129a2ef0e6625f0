import { setMaxListeners } from 'node:events'

import {
  DataError,
  StateError,
  TiltyardError,
  adamDefaults,
  withDeadline,
  type AdamParams,
} from '@tiltyard/core'

import type { Caller } from './caller.ts'
import type { Future, Futures } from './futures.ts'
import type { Gate } from './gate.ts'
import type { CheckedOptions } from './options.ts'
import type { Session } from './session.ts'
import type { WireBody } from './transport.ts'
import {
  decodeForwardBackwardOutput,
  encodeForwardBackward,
  forwardBackwardOutputOfJson,
  type ForwardBackwardOutput,
} from './wire/forward-backward.ts'
import { joinOutputs } from './wire/metrics.ts'
import { cutBatch, type WireDatum, type WireLoss } from './wire/training-data.ts'

export interface SaveSettings {
  /** Seconds until the service deletes it. Default: never. */
  readonly ttlSeconds?: number
  /** Replace a checkpoint of the same name. Default: refuse. */
  readonly overwrite?: boolean
  /** Kept with the checkpoint and listed with it, by services that can. */
  readonly userMetadata?: Readonly<Record<string, string>>
}

/** What a loss of one's own gives for the log-probabilities of each datum's targets. */
export interface CustomLossResult {
  readonly loss: number
  /** Derivative of the loss by each log-probability. */
  readonly gradients: readonly Float32Array[]
  readonly metrics?: Readonly<Record<string, number>>
}

/**
 * A model in training on the service. Calls are numbered as they are made and carried out in that order, also when nobody waits between
 * them. A request is repeated under its number until the service has it, so nothing is carried out twice. When the service takes a
 * request for good neither way, the order can't be kept any more: that call and all later ones reject.
 */
export interface TrainingModel {
  readonly id: string
  forward(data: readonly WireDatum[], loss: WireLoss): Promise<ForwardBackwardOutput>
  /** Adds gradients until the next step. Arrays in the data must stay as they are until it settles. */
  forwardBackward(data: readonly WireDatum[], loss: WireLoss): Promise<ForwardBackwardOutput>
  /**
   * A loss of one's own over log-probabilities: a forward, the function, and a backward with `cross_entropy` whose weights are its
   * derivatives, negated. Data have `target_tokens` and perhaps `weights`, nothing else.
   */
  forwardBackwardCustom(
    data: readonly WireDatum[],
    loss: (logprobs: readonly Float32Array[]) => CustomLossResult,
  ): Promise<ForwardBackwardOutput>
  /** Metrics, if the service gives any. `check` is called when its turn has come; when it throws, nothing is sent. */
  optimStep(adam: AdamParams, check?: () => void): Promise<Readonly<Record<string, number>>>
  /** Weights and optimizer; gives their path. */
  saveWeights(name: string, settings?: SaveSettings): Promise<string>
  /** Weights for sampling, kept under a path. */
  saveWeightsForSampler(name: string, settings?: SaveSettings): Promise<string>
  /** Weights for sampling, not kept: gives the id of a sampling session. */
  openSampler(): Promise<string>
  /** Frees the model on the service, once all calls so far are done. */
  unload(): Promise<void>
}

export interface TrainingModelParts {
  readonly id: string
  readonly session: Session
  readonly options: CheckedOptions
  readonly caller: Caller
  readonly futures: Futures
  /** Bounds the bytes of training data being sent. */
  readonly sending: Gate
  /** Ends all calls. */
  readonly signal: AbortSignal
}

/** The last number that the service has for this model, if it isn't fresh. */
export function createTrainingModel(parts: TrainingModelParts, lastNumber = 0): TrainingModel {
  const { id, session, options, caller, futures, sending, signal } = parts
  const { clock, deadlines } = options
  let number = lastNumber
  let turn: Promise<unknown> = Promise.resolve()
  let broken: TiltyardError | undefined

  /** `submit` runs when all earlier submissions are with the service; what it returns is awaited apart. */
  const inTurn = <T>(
    operation: string,
    submit: (within: AbortSignal) => Promise<() => Promise<T>>,
    check?: () => void,
  ) =>
    withDeadline(
      async (within) => {
        const before = turn
        let isRefused = false
        const submitted = before.then(async () => {
          if (broken !== undefined)
            throw new StateError(
              `can't ${operation}: an earlier call of this model failed (${broken.message}); go on from its last checkpoint`,
              { cause: broken },
            )
          try {
            check?.()
          } catch (error) {
            isRefused = true
            throw error
          }
          return submit(within)
        })
        turn = submitted.catch((error: unknown) => {
          // Refused before it got a number: the order stands.
          if (!isRefused && !TiltyardError.is(error, 'DATA')) broken ??= asTiltyardError(error)
        })
        const wait = await submitted
        return wait()
      },
      {
        waitingFor: `the service to ${operation}`,
        milliseconds: deadlines.training,
        signal,
        clock,
      },
    )

  /** One request under its number, and what comes of it. */
  const post = async <T>(
    request: {
      readonly operation: string
      readonly type: string
      readonly path: string
      readonly body: () => WireBody
      readonly contentType?: string
      readonly conflict?: 'refuse'
      readonly bytes?: number
      readonly decode?: (bytes: Uint8Array) => T
      readonly fromJson: (value: never) => T
    },
    within: AbortSignal,
  ): Promise<() => Promise<T>> => {
    const { operation, type, path, body, contentType, conflict, bytes = 0 } = request
    const future = await sending.through(
      bytes,
      () =>
        caller.json<Future>({
          operation,
          path,
          body,
          signal: within,
          ...(contentType !== undefined && { contentType }),
          ...(conflict !== undefined && { conflict }),
        }),
      within,
    )
    return () =>
      futures.result<T>(future, {
        operation,
        type,
        signal: within,
        decode: request.decode ?? unexpectedProtobuf(operation),
        fromJson: request.fromJson,
      })
  }

  const submitBatch = async (
    data: readonly WireDatum[],
    loss: WireLoss,
    forwardOnly: boolean,
    within: AbortSignal,
  ): Promise<() => Promise<ForwardBackwardOutput>> => {
    // Each part listens to it.
    setMaxListeners(0, within)
    const { parallelChunks, chunk } = session.flags
    const cut = cutBatch(data, chunk).map((part) => ({ ...part, seqId: (number += 1) }))
    const send = ({ data: some, bytes, seqId }: (typeof cut)[number]) =>
      post(
        {
          operation: forwardOnly ? 'run forward' : 'run forward and backward',
          type: forwardOnly ? 'Forward' : 'ForwardBackward',
          path: '/forward_backward',
          contentType: 'application/x-protobuf',
          body: () => encodeForwardBackward({ modelId: id, seqId, data: some, loss, forwardOnly }),
          bytes,
          decode: decodeForwardBackwardOutput,
          fromJson: forwardBackwardOutputOfJson,
        },
        within,
      )
    const waits: (() => Promise<ForwardBackwardOutput>)[] = []
    if (parallelChunks) {
      // The first part goes last: the service begins when it has all, and can take the batch as one.
      const rest = await Promise.all(cut.slice(1).map(send))
      waits.push(await send(cut[0]!), ...rest)
    } else for (const part of cut) waits.push(await send(part))
    return async () => joinOutputs(await Promise.all(waits.map((wait) => wait())))
  }

  const batch = async (data: readonly WireDatum[], loss: WireLoss, forwardOnly: boolean) => {
    if (data.length === 0) throw new DataError('no data given')
    return inTurn(forwardOnly ? 'run forward' : 'run forward and backward', (within) =>
      submitBatch(data, loss, forwardOnly, within),
    )
  }

  const call = <T>(
    operation: string,
    type: string,
    path: string,
    fields: () => object,
    fromJson: (value: never) => T,
    { conflict, check }: { readonly conflict?: 'refuse'; readonly check?: () => void } = {},
  ) =>
    inTurn(
      operation,
      (within) => {
        const body = JSON.stringify({ model_id: id, seq_id: (number += 1), ...fields() })
        return post(
          {
            operation,
            type,
            path,
            body: () => body,
            fromJson,
            ...(conflict !== undefined && { conflict }),
          },
          within,
        )
      },
      check,
    )

  return {
    id,
    forward: (data, loss) => batch(data, loss, true),
    forwardBackward: (data, loss) => batch(data, loss, false),
    async forwardBackwardCustom(data, loss) {
      if (data.length === 0) throw new DataError('no data given')
      const plain = data.map(withoutLoss)
      return inTurn('run a loss of its own', async (within) => {
        const crossEntropy = { name: 'cross_entropy' }
        const { outputs } = await (await submitBatch(plain, crossEntropy, true, within))()
        const logprobs = outputs.map(logprobsOf)
        const given = evaluated(loss, logprobs)
        const weighted = plain.map(({ input, lossInputs }, at) => ({
          input,
          lossInputs: { ...lossInputs, weights: weightsOf(given.gradients[at], logprobs[at]!, at) },
        }))
        const wait = await submitBatch(weighted, crossEntropy, false, within)
        return async () => {
          const { metrics, ...output } = await wait()
          const { 'loss:sum': surrogate, ...others } = metrics
          return {
            ...output,
            metrics: {
              ...others,
              ...(surrogate !== undefined && { 'surrogate_loss:sum': surrogate }),
              ...given.metrics,
              'loss:sum': given.loss,
            },
          }
        }
      })
    },
    optimStep: (adam, check) =>
      call(
        'step the optimizer',
        'OptimStep',
        '/optim_step',
        () => ({ adam_params: adamFields(adam), type: 'optim_step' }),
        ({ metrics }: { metrics?: Readonly<Record<string, number>> | null }) => metrics ?? {},
        check === undefined ? {} : { check },
      ),
    saveWeights: (name, settings = {}) =>
      call(
        `save weights as ${name}`,
        'SaveWeights',
        '/save_weights',
        () => ({
          path: name,
          ...saveFields(settings),
          overwrite: settings.overwrite ?? false,
          type: 'save_weights',
        }),
        ({ path }: { path: string }) => path,
        { conflict: 'refuse' },
      ),
    saveWeightsForSampler: (name, settings = {}) =>
      call(
        `publish weights as ${name}`,
        'SaveWeightsForSampler',
        '/save_weights_for_sampler',
        () => ({ path: name, ...saveFields(settings), type: 'save_weights_for_sampler' }),
        ({ path }: { path: string }) => path,
        { conflict: 'refuse' },
      ),
    openSampler: () =>
      call(
        'publish weights',
        'SaveWeightsForSampler',
        '/save_weights_for_sampler',
        () => ({
          sampling_session_seq_id: session.nextSampler(),
          type: 'save_weights_for_sampler',
        }),
        (answer: { sampling_session_id: string }) => answer.sampling_session_id,
      ),
    async unload() {
      await turn
      const future = await caller.json<Partial<Future>>({
        operation: 'unload a model',
        path: '/unload_model',
        json: { model_id: id, type: 'unload_model' },
        signal,
        retries: 0,
      })
      if (future.request_id === undefined) return
      await futures.result(future as Future, {
        operation: 'unload a model',
        type: 'UnloadModel',
        signal,
        decode: () => undefined,
        fromJson: () => undefined,
      })
    },
  }
}

function adamFields(adam: AdamParams) {
  const all = { ...adamDefaults, ...adam }
  return {
    learning_rate: all.learningRate,
    beta1: all.beta1,
    beta2: all.beta2,
    eps: all.epsilon,
    weight_decay: all.weightDecay,
    grad_clip_norm: all.clipNorm,
  }
}

function saveFields({ ttlSeconds, userMetadata }: SaveSettings) {
  return {
    ...(ttlSeconds !== undefined && { ttl_seconds: ttlSeconds }),
    ...(userMetadata !== undefined && { user_metadata: userMetadata }),
  }
}

/** A datum for the forward of a loss of one's own: its targets, with weights that mean nothing yet. */
function withoutLoss({ input, lossInputs }: WireDatum, index: number): WireDatum {
  const { target_tokens: targets, weights, ...others } = lossInputs
  const [other] = Object.keys(others)
  if (targets === undefined || other !== undefined) {
    throw new DataError(
      `datum ${index}: a loss of one's own takes target_tokens and perhaps weights, ${other === undefined ? 'and target_tokens is missing' : `not ${other}`}`,
    )
  }
  const zero = {
    data: new Float32Array(targets.data.length),
    ...(targets.shape !== undefined && { shape: targets.shape }),
  }
  return { input, lossInputs: { target_tokens: targets, weights: weights ?? zero } }
}

function evaluated(
  loss: (logprobs: readonly Float32Array[]) => CustomLossResult,
  logprobs: readonly Float32Array[],
): CustomLossResult {
  try {
    return loss(logprobs)
  } catch (error) {
    throw new DataError('the loss threw an error; nothing was learned from this batch', {
      cause: error,
    })
  }
}

function weightsOf(gradient: Float32Array | undefined, logprobs: Float32Array, index: number) {
  if (gradient?.length !== logprobs.length) {
    throw new DataError(
      `datum ${index}: the loss gave ${gradient?.length ?? 'no'} derivatives for ${logprobs.length} log-probabilities`,
    )
  }
  const bad = gradient.findIndex((value) => !Number.isFinite(value))
  if (bad !== -1) throw new DataError(`datum ${index}: derivative ${bad} is ${gradient[bad]}`)
  return { data: gradient.map((value) => -value) }
}

export function logprobsOf(
  output: ForwardBackwardOutput['outputs'][number],
  index: number,
): Float32Array {
  const logprobs = output['logprobs']?.data
  if (logprobs instanceof Float32Array) return logprobs
  throw new DataError(`the service gave no log-probabilities for datum ${index}`)
}

function unexpectedProtobuf(operation: string) {
  return () => {
    throw new DataError(`${operation}: the service answered with protobuf where JSON was due`)
  }
}

function asTiltyardError(error: unknown): TiltyardError {
  return TiltyardError.is(error) ? error : new StateError('the call was ended', { cause: error })
}
