import type { Backend } from '@tiltyard/core'
import { Hono, type Context } from 'hono'
import type { z } from 'zod'

import type { Archives } from './archives.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Futures } from './futures.ts'
import {
  baseOf,
  bytesOfBody,
  credentialOf,
  digest,
  failed,
  isKnown,
  json,
  jsonOf,
  nothing,
  parse,
  pathOf,
  respond,
  statusOf,
} from './http.ts'
import { pageOf, runsOf, wireCheckpoint } from './listing.ts'
import type { CheckedServerOptions } from './options.ts'
import { Refusal } from './refusal.ts'
import type { Samplers } from './samplers.ts'
import type { Sessions } from './sessions.ts'
import { plainName, type Training } from './training.ts'
import { bodies, trainingRequestOfJson } from './wire/json-requests.ts'
import { decodeTrainingRequest } from './wire/training-request.ts'

export interface AppParts {
  readonly options: CheckedServerOptions
  readonly backend: Backend
  readonly sessions: Sessions
  readonly training: Training
  readonly samplers: Samplers
  readonly futures: Futures
  readonly checkpoints: Checkpoints
  readonly archives: Archives
}

const PROTOBUF = 'application/x-protobuf'
/** Below it no key is asked for: an address that can't be guessed is one. */
const DOWNLOADS = '/archives/'

/** The routes of the protocol. Whatever stands before `/api/v1` is the address's own. */
export function createApp(parts: AppParts): Hono {
  const { options, backend, sessions, training, samplers, futures, checkpoints, archives } = parts
  const { keys, limits, clock, logger } = options
  const app = new Hono({ getPath: pathOf })

  app.use(async (context, next) => {
    const began = clock.now()
    const open = pathOf(context.req.raw).startsWith(DOWNLOADS)
    if (!open && keys.length > 0 && !isKnown(credentialOf(context), keys)) {
      const refused = new Refusal(401, 'no such key; it belongs into the X-API-Key header')
      context.res = failed(refused)
    } else await next()
    logger.debug('request', {
      method: context.req.method,
      // The rest of a download's address is as good as a key.
      path: open ? DOWNLOADS : pathOf(context.req.raw),
      status: context.res.status,
      bytes: Number(context.req.header('content-length') ?? 0),
      ms: Math.round(clock.now() - began),
    })
  })
  app.onError((error) => {
    const status = statusOf(error)
    if (status >= 500) logger.error('a request failed', { error: error.name })
    return failed(error)
  })
  app.notFound(() => failed(new Refusal(404, 'no such call here')))

  const read = async <Schema extends z.ZodType>(
    context: Context,
    schema: Schema,
  ): Promise<z.output<Schema>> => schema.parse(await jsonOf(context, limits.bodyBytes))

  // Start and session

  app.get('/healthz', () => json({ status: 'ok' }))
  app.post('/client/config', () =>
    json({ pjwt_auth_enabled: false, use_pyqwest_transport: false, parallel_fwdbwd_chunks: true }),
  )
  app.post('/client/dynamic_config', () =>
    json({ refresh_interval_sec: 300, sample_cancel_enabled: true }),
  )
  app.post('/telemetry', async (context) => {
    // Holds request headers of its client, keys among them: dropped unread.
    await context.req.raw.body?.cancel()
    return json({ status: 'accepted' })
  })
  app.get('/get_server_capabilities', async () => {
    const described = await backend.describe()
    return json({
      supported_models: described.models.map((model) => ({
        model_name: model.name,
        max_context_length: model.contextWindow,
        trainable: true,
        sampleable: true,
      })),
      tiltyard: {
        losses: described.losses,
        images: described.images,
        top_logprobs: described.topLogprobs,
        deterministic: described.deterministic,
        adaptations: described.adaptations,
        executor: described.executor,
        models: described.models.map((model) => ({
          vocabulary_size: model.vocabularySize,
          parameters: model.parameters,
        })),
      },
    })
  })
  app.post('/create_session', async (context) => {
    await read(context, bodies.createSession)
    return json({ type: 'create_session', session_id: sessions.create().id })
  })
  app.post('/session_heartbeat', async (context) => {
    sessions.get((await read(context, bodies.sessionId)).session_id)
    return json({ type: 'session_heartbeat' })
  })
  app.post('/sessions/:session/finish', async (context) => {
    await context.req.raw.body?.cancel()
    await sessions.finish(context.req.param('session'))
    return nothing()
  })
  app.get('/sessions', (context) => {
    const ids = sessions.all().map(({ id }) => id)
    return json({ sessions: pageOf(ids, context, 20).items })
  })
  app.get('/sessions/:session', (context) => {
    const session = sessions.get(context.req.param('session'))
    return json({
      training_run_ids: [...session.models.values()].map(({ model }) => model.id),
      sampler_ids: [...session.samplers.values()].map(({ id }) => id),
    })
  })

  // Training

  app.post('/create_model', async (context) =>
    json(training.createModel(await read(context, bodies.createModel))),
  )
  app.post('/get_info', async (context) => {
    const model = sessions.model((await read(context, bodies.modelId)).model_id)
    const name = plainName(model.baseModel)
    return json({
      type: 'get_info',
      model_id: model.id,
      model_data: {
        arch: 'decoder',
        model_name: name,
        tokenizer_id: options.tokenizer ?? name,
      },
      model_name: name,
      is_lora: model.rank !== undefined,
      ...(model.rank !== undefined && { lora_rank: model.rank }),
    })
  })
  app.post('/unload_model', async (context) =>
    json(training.unload((await read(context, bodies.modelId)).model_id)),
  )
  app.post('/forward_backward', async (context) => {
    const bytes = await bytesOfBody(context, limits.bodyBytes)
    const isProtobuf = context.req.header('content-type')?.includes(PROTOBUF) === true
    const request = isProtobuf
      ? decodeTrainingRequest(bytes)
      : trainingRequestOfJson(parse(bytes), false)
    return json(training.forwardBackward(request, digest(bytes)))
  })
  app.post('/forward', async (context) => {
    const bytes = await bytesOfBody(context, limits.bodyBytes)
    return json(training.forwardBackward(trainingRequestOfJson(parse(bytes), true), digest(bytes)))
  })
  app.post('/optim_step', async (context) =>
    json(training.optimStep(await read(context, bodies.optimStep))),
  )
  app.post('/save_weights', async (context) =>
    json(training.saveWeights(await read(context, bodies.saveWeights))),
  )
  app.post('/save_weights_for_sampler', async (context) =>
    json(training.saveForSampler(await read(context, bodies.saveForSampler))),
  )
  app.post('/load_weights', async (context) =>
    json(await training.loadWeights(await read(context, bodies.loadWeights))),
  )

  // Sampling

  app.post('/create_sampling_session', async (context) => {
    const body = await read(context, bodies.createSampler)
    const { id } = await samplers.create(body.session_id, body.sampling_session_seq_id, {
      ...(body.base_model != null && { baseModel: body.base_model }),
      ...(body.model_path != null && { path: body.model_path }),
    })
    return json({ type: 'create_sampling_session', sampling_session_id: id })
  })
  app.get('/samplers/:sampler', (context) => {
    const { id, baseModel, path } = sessions.sampler(context.req.param('sampler'))
    return json({
      sampler_id: id,
      base_model: plainName(baseModel),
      ...(path !== undefined && { model_path: path }),
    })
  })
  app.post('/asample', async (context) =>
    json(await samplers.sample(await read(context, bodies.sample))),
  )
  app.post('/retrieve_future', async (context) => {
    const { request_id: id } = await read(context, bodies.requestId)
    const outcome = await futures.poll(id, limits.holdMs, context.req.raw.signal)
    if (outcome.kind === 'unknown') throw new Refusal(404, `no request ${id}`)
    if (outcome.kind === 'pending')
      return json({ type: 'try_again', request_id: id, queue_state: 'active' }, 408)
    if (outcome.kind !== 'typed') return json(outcome.value)
    const accepts = context.req.header('accept')?.includes(PROTOBUF) === true
    return accepts ? respond(outcome.value.protobuf(), PROTOBUF, 200) : json(outcome.value.json())
  })
  app.post('/cancel_future', async (context) => {
    futures.cancel((await read(context, bodies.requestId)).request_id)
    return nothing()
  })

  // Checkpoints

  app.post('/weights_info', async (context) => {
    const { tinker_path: path } = await read(context, bodies.tinkerPath)
    const { baseModel, rank } = await checkpoints.get(path)
    return json({
      base_model: baseModel,
      is_lora: rank !== undefined,
      ...(rank !== undefined && { lora_rank: rank }),
      train_unembed: true,
      train_mlp: true,
      train_attn: true,
    })
  })
  app.get('/training_runs', async (context) => {
    const all = await runsOf(sessions, checkpoints)
    const { items, cursor } = pageOf(all, context, 20)
    return json({ training_runs: items, cursor })
  })
  app.get('/training_runs/:run', async (context) => {
    const id = context.req.param('run')
    const run = (await runsOf(sessions, checkpoints)).find((it) => it.training_run_id === id)
    if (run === undefined) throw new Refusal(404, `no training run ${id}`)
    return json(run)
  })
  app.get('/training_runs/:run/checkpoints', async (context) => {
    const id = context.req.param('run')
    const own = (await checkpoints.list()).filter(({ model }) => model === id)
    if (own.length === 0) sessions.model(id)
    return json({ checkpoints: own.map(wireCheckpoint) })
  })
  app.get('/checkpoints', async (context) => {
    const { items, cursor } = pageOf(await checkpoints.list(), context, 100)
    return json({ checkpoints: items.map(wireCheckpoint), cursor })
  })
  const one = '/training_runs/:run/checkpoints/:kind/:name'
  app.delete(one, async (context) => {
    await checkpoints.remove(at(context))
    return nothing()
  })
  app.get(`${one}/archive`, async (context) => {
    const { token, expires } = await archives.offer(at(context))
    const place = `${baseOf(context.req.raw, options.advertise)}${DOWNLOADS}${token}`
    return respond('', 'text/plain', 302, { location: place, expires: expires.toUTCString() })
  })
  app.get(`${DOWNLOADS}:token`, async (context) => {
    const { body, bytes } = await archives.open(context.req.param('token'))
    return new Response(body, {
      headers: { 'content-type': 'application/x-tar', 'content-length': String(bytes) },
    })
  })
  app.put(`${one}/ttl`, async (context) => {
    const { ttl_seconds: seconds } = await read(context, bodies.ttl)
    const { expiresAt: _before, ...entry } = await checkpoints.get(at(context))
    await checkpoints.update(
      seconds === null ? entry : { ...entry, expiresAt: Date.now() + 1_000 * seconds },
    )
    return nothing()
  })
  app.post(`${one}/publish`, async (context) => {
    const entry = await checkpoints.get(at(context))
    if (entry.public === true) throw new Refusal(409, `${entry.path} is public already`)
    await checkpoints.update({ ...entry, public: true })
    return nothing()
  })
  app.delete(`${one}/publish`, async (context) => {
    const entry = await checkpoints.get(at(context))
    await checkpoints.update({ ...entry, public: false })
    return nothing()
  })
  return app
}

/** The path that a checkpoint's address stands for. */
function at(context: Context): string {
  const { run, kind, name } = context.req.param()
  return `tinker://${run}/${kind}/${name}`
}
