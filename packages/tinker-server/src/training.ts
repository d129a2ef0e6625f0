import { createHash } from 'node:crypto'

import { DataError, type AdamParams, type Backend, type Learner } from '@tiltyard/core'
import type { z } from 'zod'

import type { Checkpoints, SaveRequest } from './checkpoints.ts'
import type { Futures } from './futures.ts'
import type { CheckedServerOptions } from './options.ts'
import { createOrderedCalls, type Started } from './ordered-calls.ts'
import { Refusal } from './refusal.ts'
import type { Samplers } from './samplers.ts'
import type { ServedModel, Sessions } from './sessions.ts'
import { batchOf } from './wire/data.ts'
import type { bodies } from './wire/json-requests.ts'
import { trainingResult } from './wire/results.ts'
import type { TrainingRequest } from './wire/training-request.ts'

type Body<Name extends keyof typeof bodies> = z.infer<(typeof bodies)[Name]>

/** What a submission is answered with. */
interface Submitted {
  readonly request_id: string
  readonly model_id?: string
}

/** The verbs of training. Each gives a request id at once; what it came to is fetched later. */
export interface Training {
  createModel(body: Body<'createModel'>): Submitted
  forwardBackward(request: TrainingRequest, digest: string): Submitted
  optimStep(body: Body<'optimStep'>): Submitted
  saveWeights(body: Body<'saveWeights'>): Submitted
  saveForSampler(body: Body<'saveForSampler'>): Submitted
  loadWeights(body: Body<'loadWeights'>): Promise<Submitted>
  unload(id: string): Submitted
}

/** The ending of a base model's name by which a whole model is trained; the rank is ignored then. */
const FULL = ':full'

/** What `optim_step` takes for granted; not the defaults of the contracts. */
const EPSILON = 1e-12

export interface TrainingParts {
  readonly options: CheckedServerOptions
  readonly backend: Backend
  readonly sessions: Sessions
  readonly samplers: Samplers
  readonly futures: Futures
  readonly checkpoints: Checkpoints
}

export function createTraining(parts: TrainingParts): Training {
  const { options, backend, sessions, samplers, futures, checkpoints } = parts
  const { clock, limits } = options

  const submit = (
    modelId: string,
    seqId: number | null | undefined,
    content: string,
    start: (model: ServedModel) => Started,
  ): Submitted => {
    const model = sessions.model(modelId)
    const id = model.calls.submit(
      seqId ?? undefined,
      content,
      () => start(model),
      (work) => futures.add(work, model.session),
    )
    return { request_id: id, model_id: modelId }
  }

  /** A model of a session under its number; the same again for the same number. */
  const addModel = (
    sessionId: string,
    number: number,
    about: Pick<ServedModel, 'baseModel' | 'userMetadata'> & { readonly rank?: number },
    make: (model: ServedModel) => Promise<Learner>,
    answer: (id: string) => object,
  ): Submitted => {
    const session = sessions.get(sessionId)
    const before = session.models.get(number)
    if (before !== undefined) return { request_id: before.requestId, model_id: before.model.id }
    if (sessions.models().length >= limits.models)
      throw new Refusal(429, `${limits.models} models are in training; try again later`)
    const id = `${sessionId}:train:${number}`
    const model: ServedModel = {
      ...about,
      id,
      session: sessionId,
      usedAt: Date.now(),
      calls: createOrderedCalls(clock, limits.holeMs),
    }
    const made = make(model)
      .then((learner) => {
        model.learner = learner
        return answer(id)
      })
      .finally(() => model.calls.begin())
    const requestId = futures.add(made, sessionId)
    sessions.addModel(model)
    session.models.set(number, { model, requestId })
    return { request_id: requestId, model_id: id }
  }

  return {
    createModel(body) {
      const { base_model: baseModel, lora_config: lora } = body
      const rank = lora?.rank ?? undefined
      const trained = [lora?.train_mlp, lora?.train_attn, lora?.train_unembed]
      const full = baseModel.endsWith(FULL)
      if (body.optimizer_config != null && body.optimizer_config.type !== 'adamw')
        throw new Refusal(400, `no optimizer "${body.optimizer_config.type}" here; there is adamw`)
      if (trained.every((part) => part === false))
        throw new Refusal(
          400,
          'train_mlp, train_attn and train_unembed are all false: nothing would learn',
        )
      if (trained.includes(false))
        throw new Refusal(
          400,
          'this server puts adapters on all parts of a model; leave train_* true',
        )
      if (!full && (rank === undefined || rank < 1))
        throw new Refusal(400, `lora_config.rank is ${rank ?? 'missing'}; it must be at least 1`)
      const seed = lora?.seed
      return addModel(
        body.session_id,
        body.model_seq_id,
        {
          baseModel,
          ...(!full && rank !== undefined && { rank }),
          ...(body.user_metadata != null && { userMetadata: body.user_metadata }),
        },
        () =>
          backend.learner({
            model: plainName(baseModel),
            adaptation: full
              ? 'full'
              : { rank: rank!, ...(seed != null && { seed: uint32(seed) }) },
          }),
        (id) => ({ type: 'create_model', model_id: id }),
      )
    },

    forwardBackward(request, digest) {
      return submit(request.modelId, request.seqId, digest, (model) => ({
        result: (async () => {
          const { data, loss, outputs } = batchOf(request)
          const learner = learnerOf(model)
          const {
            logprobs,
            loss: sum,
            metrics,
          } = await (request.forwardOnly
            ? learner.forward(data, loss)
            : learner.forwardBackward(data, loss))
          return trainingResult(outputs(logprobs), { ...wellNamed(metrics), 'loss:sum': sum })
        })(),
      }))
    },

    optimStep(body) {
      return submit(body.model_id, body.seq_id, contentOf(body), (model) => ({
        result: (async () => {
          if (body.optimizer_params !== undefined)
            throw new DataError('this server has AdamW alone; give adam_params')
          const { metrics } = await learnerOf(model).optimStep(adamOf(body.adam_params ?? {}))
          return { metrics }
        })(),
      }))
    },

    saveWeights(body) {
      return submit(body.model_id, body.seq_id, contentOf(body), (model) => ({
        blocks: true,
        result: (async () => {
          const name = body.path ?? `step-${learnerOf(model).steps}`
          const { path } = await checkpoints.save(learnerOf(model), saveRequest(model, name, body))
          return { type: 'save_weights', path }
        })(),
      }))
    },

    saveForSampler(body) {
      // A repeat brings another number for its sampling session; it is the same call.
      const { sampling_session_seq_id: number, ...content } = body
      return submit(body.model_id, body.seq_id, contentOf(content), (model) => {
        if (body.path != null) {
          const name = body.path
          return {
            blocks: true,
            result: (async () => {
              const request = saveRequest(model, name, body)
              const { path } = await checkpoints.publish(learnerOf(model), request)
              return { type: 'save_weights_for_sampler', path }
            })(),
          }
        }
        if (body.kind === 'inflight')
          throw new DataError('this server has samplers with fixed weights only (kind "snapshot")')
        const sampler = learnerOf(model).publish()
        const { id } = samplers.add(model.session, number ?? undefined, {
          baseModel: model.baseModel,
          sampler,
        })
        return {
          result: sampler.then(() => ({
            type: 'save_weights_for_sampler',
            sampling_session_id: id,
          })),
        }
      })
    },

    async loadWeights(body) {
      const { path, optimizer } = body
      const load = async (model: ServedModel) => {
        const entry = await checkpoints.get(path)
        if (entry.ref.kind !== 'training')
          throw new DataError(`${path} has weights for sampling only; load a /weights/ path`)
        return backend.learner({
          model: plainName(model.baseModel),
          adaptation: model.rank === undefined ? 'full' : { rank: model.rank },
          from: entry.ref,
          optimizer,
        })
      }
      if (body.session_id != null) {
        const entry = await checkpoints.get(path)
        return addModel(
          body.session_id,
          body.model_seq_id ?? 0,
          {
            baseModel: body.base_model ?? entry.baseModel,
            ...(entry.rank !== undefined && { rank: entry.rank }),
            ...(body.user_metadata != null && { userMetadata: body.user_metadata }),
          },
          load,
          (id) => ({ type: 'load_weights', path, model_id: id }),
        )
      }
      if (body.model_id == null)
        throw new Refusal(400, 'load_weights needs model_id, or session_id and model_seq_id')
      if (body.seq_id != null && body.seq_id !== 1)
        throw new Refusal(400, `LoadWeights is not permitted with seq_id ${body.seq_id}`)
      return submit(body.model_id, body.seq_id, contentOf(body), (model) => ({
        blocks: true,
        result: (async () => {
          const fresh = learnerOf(model)
          model.learner = await load(model)
          await fresh.close()
          return { type: 'load_weights', path, model_id: model.id }
        })(),
      }))
    },

    unload(id) {
      const { session } = sessions.model(id)
      const work = sessions.removeModel(id).then(() => ({ type: 'unload_model', model_id: id }))
      return { request_id: futures.add(work, session), model_id: id }
    },
  }
}

export function plainName(baseModel: string): string {
  return baseModel.endsWith(FULL) ? baseModel.slice(0, -FULL.length) : baseModel
}

/** Seeds are of 64 bits on the wire, of 32 here. Small ones stay as they are. */
export function uint32(seed: number | string): number {
  const wide = BigInt(seed)
  return Number((wide ^ (wide >> 32n)) & 0xffff_ffffn)
}

function adamOf(given: NonNullable<Body<'optimStep'>['adam_params']>): AdamParams {
  return {
    learningRate: given.learning_rate ?? 1e-4,
    beta1: given.beta1 ?? 0.9,
    beta2: given.beta2 ?? 0.95,
    epsilon: given.eps ?? EPSILON,
    weightDecay: given.weight_decay ?? 0,
    clipNorm: given.grad_clip_norm ?? 0,
  }
}

/** Clients take a metric's name apart at its colon, and break when there isn't exactly one. */
function wellNamed(metrics: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(metrics).filter(
      ([name, value]) => /^[^:]+:[^:]+$/.test(name) && Number.isFinite(value),
    ),
  )
}

/** The same for the same fields, in whatever order they came. */
function contentOf(body: object): string {
  const sorted = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, member]) => [key, sorted(member)]),
        )
      : value
  return createHash('sha256')
    .update(JSON.stringify(sorted(body)))
    .digest('base64')
}

function learnerOf({ id, learner }: ServedModel): Learner {
  if (learner === undefined) throw new Refusal(404, `model ${id} could not be made`)
  return learner
}

function saveRequest(
  model: ServedModel,
  name: string,
  body: Body<'saveWeights'> | Body<'saveForSampler'>,
): SaveRequest {
  return {
    model: model.id,
    baseModel: model.baseModel,
    name,
    ...(model.rank !== undefined && { rank: model.rank }),
    ...(body.ttl_seconds != null && { ttlSeconds: body.ttl_seconds }),
    ...('overwrite' in body && body.overwrite === true && { overwrite: true }),
    ...(body.user_metadata != null && { userMetadata: body.user_metadata }),
  }
}
