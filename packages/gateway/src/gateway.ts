import { asError, type PolicyHandle } from '@tiltyard/core'
import { Hono } from 'hono'

import { createAdmission } from './admission.ts'
import { createWorkQueue, type WorkQueue } from './agents/work-queue.ts'
import {
  createAttempt,
  OWN_ALIAS,
  type Attempt,
  type AttemptOptions,
  type OpenAttempt,
} from './attempt.ts'
import {
  asApiError,
  errorResponse,
  foreignRequest,
  invalidKey,
  modelNotFound,
  routeNotFound,
} from './errors.ts'
import { toResponse, type Answer } from './http/answer.ts'
import { caller, type Client } from './http/client.ts'
import { infer, type InferenceServices } from './http/inference.ts'
import { pageRoutes } from './http/page.ts'
import { takeEnd, takeReward } from './http/rollout-routes.ts'
import { takeWork } from './http/work-route.ts'
import { attemptPath, isOwnRequest, pathOf, placeOf, type Place } from './identity.ts'
import { mintKey } from './keys.ts'
import { settingsOf, type GatewayOptions } from './options.ts'
import { createPolicies } from './policies.ts'
import { createRegistry } from './registry.ts'
import { createServing } from './serving.ts'
import { orAborted } from './waiting.ts'

/** Sums since the gateway began. */
export interface GatewayCounts {
  readonly open: number
  readonly inFlight: number
  readonly replayed: number
  readonly refused: number
  readonly failed: number
}

/** The OpenAI-compatible face of policies. One per run: what is behind it moves, its address stays. */
export interface Gateway {
  /** A standard fetch: hand it to a client in this process, and no socket is needed. Any origin will do. */
  readonly fetch: typeof fetch
  /** For servers: as `fetch`, but a reply comes as what to write. Without a client, the request's signal tells when it goes. */
  answer(request: Request, client?: Client): Promise<Response | Answer>
  /** Where clients reach it: the server's address, or one for `fetch` alone. Without `/v1`. */
  origin: string
  /** Moves an alias to a policy. Calls under way, and pinned attempts, keep what they have; `released` tells when none is left. */
  publish(alias: string, policy: PolicyHandle, released?: () => void): void
  readonly aliases: readonly string[]
  /** Begins an attempt. @throws StateError when one of that name is open. */
  open(options: AttemptOptions): Attempt
  /** A client's base URL for an attempt, labelled with an agent's name if there are several. */
  baseURL(attempt: Attempt, agent?: string): string
  /** Work for remote agents. */
  readonly work: WorkQueue
  /** Whether anybody who reaches it may call it. */
  readonly needsNoKey: boolean
  /** New calls wait, up to `holdMs`. */
  pause(): void
  resume(): void
  /** Resolves when no call is under way. */
  drained(): Promise<void>
  readonly counts: GatewayCounts
  /** Ends all attempts and refuses what comes. Idempotent. */
  close(): Promise<void>
}

/** Names the routes that there are, for whoever looks for others. */
const routes = [
  'POST /v1/chat/completions',
  'POST /v1/responses',
  'POST /v1/completions',
  'GET /v1/models',
  'POST /v1/rollout/reward',
  'POST /v1/rollout/end',
  'POST /v1/rollout/heartbeat',
  'GET /healthz',
]

/**
 * A gateway that nothing reaches yet but its `fetch`; `serveGateway` opens a socket for it.
 * @throws ConfigError for options that don't exist or can't be.
 */
export function createGateway(options: GatewayOptions = {}): Gateway {
  const settings = settingsOf(options)
  const { clock, wallClock, logger, workerKey } = settings
  let origin = 'http://gateway.tiltyard.internal'
  const policies = createPolicies()
  for (const [alias, policy] of Object.entries(settings.policies)) policies.publish(alias, policy)
  const registry = createRegistry()
  const admission = createAdmission(clock, settings.holdMs)
  const work = createWorkQueue()
  const counts = { replayed: 0, refused: 0, failed: 0 }

  const begin = (attemptOptions: AttemptOptions, closed: (attempt: OpenAttempt) => void) =>
    createAttempt(attemptOptions, {
      key: mintKey(),
      maxConcurrent: settings.maxConcurrentCalls,
      tolerance: settings.echoTolerance,
      reasoning: settings.reasoning,
      now: () => clock.now(),
      policies,
      closed,
    })
  const serving =
    settings.serving === undefined ? undefined : createServing(settings.serving, begin, policies)
  const needsNoKey =
    !settings.requireKey || (serving !== undefined && settings.serving?.key === undefined)

  const services: InferenceServices = {
    settings,
    admission,
    calls: {
      clock,
      wallClock,
      tokenizer: settings.tokenizer,
      replyTokens: settings.replyTokens,
      samplerRetries: settings.samplerRetries,
      callMs: settings.callMs,
      orphanMs: settings.orphanMs,
    },
    models: (attempt) => modelsOf(attempt),
    count(what) {
      counts[what] += 1
    },
  }
  const modelsOf = ({ options: { policy } }: OpenAttempt) => [
    ...new Set(['alias' in policy ? policy.alias : OWN_ALIAS, ...policies.aliases()]),
  ]

  /** Whose request it is. */
  const identify = (request: Request, place: Place): OpenAttempt => {
    const { headers } = request
    const own = place.rollout === undefined ? serving?.find(headers) : undefined
    const found = own ?? registry.find(headers, place)
    if (found !== undefined && (found !== own || settings.serving?.key !== undefined)) return found
    const named = found ?? (settings.requireKey ? undefined : registry.named(place))
    if (named === undefined) throw invalidKey()
    if (!isOwnRequest(request, origin)) throw foreignRequest()
    return named
  }

  const refuse = (error: unknown): Response => {
    const known = asApiError(error)
    counts[known.answer.status >= 500 ? 'failed' : 'refused'] += 1
    logger.debug('refused', { code: known.code, status: known.answer.status })
    if (known.code === 'internal_error')
      logger.error('the gateway failed', { error: asError(known.cause).name })
    return errorResponse(known)
  }

  const answerOthers = async (request: Request): Promise<Response> => {
    const pathname = pathOf(request.url)
    const { route, ...place } = placeOf(pathname)
    const isPost = request.method === 'POST'
    const whose = () => identify(request, { route, ...place })
    if (isPost && route === '/rollout/reward')
      return takeReward(whose(), request, settings.maxBodyBytes)
    if (isPost && route === '/rollout/end') return takeEnd(whose(), request, settings.maxBodyBytes)
    if (isPost && route === '/rollout/heartbeat') {
      whose().seen()
      return Response.json({ status: 'ok' })
    }
    if (request.method === 'GET' && /^\/models(\/|$)/.test(route))
      return models(route.slice('/models/'.length), modelsOf(whose()))
    throw routeNotFound(request.method, pathname, routes)
  }

  const app = new Hono()
  app.get('/healthz', () => Response.json({ status: 'ok' }))
  if (workerKey !== undefined)
    app.post('/work/next', ({ req }) => takeWork(req.raw, work, workerKey, clock))
  if (serving !== undefined) pageRoutes(app)
  app.all('*', ({ req }) => answerOthers(req.raw))
  app.onError(refuse)

  /** Calls don't go through the router: it would cost them more than finding their route does. */
  const answer = async (
    request: Request,
    client = caller(request.signal),
  ): Promise<Response | Answer> => {
    const place = placeOf(pathOf(request.url))
    if (request.method !== 'POST' || !inferenceRoutes.has(place.route)) return app.fetch(request)
    try {
      return await infer(identify(request, place), place, request, client, services)
    } catch (error) {
      return refuse(error)
    }
  }
  const answerFully = async (request: Request): Promise<Response> => {
    const given = await answer(request)
    return given instanceof Response ? given : toResponse(given, request.signal)
  }

  const gateway: Gateway = {
    fetch: async (input, init) => {
      const request =
        input instanceof Request && init === undefined ? input : new Request(input, init)
      const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
      const answered = answerFully(request)
      // As fetch does it: an abort rejects at once.
      return signal === undefined ? answered : orAborted(answered, signal)
    },
    answer,
    get origin() {
      return origin
    },
    set origin(value) {
      origin = value.replace(/\/+$/, '')
    },
    publish: (alias, policy, released) => policies.publish(alias, policy, released),
    get aliases() {
      return policies.aliases()
    },
    open(attemptOptions) {
      const attempt = begin(attemptOptions, (closed) => registry.remove(closed))
      registry.add(attempt)
      return attempt
    },
    baseURL: ({ rollout, attempt, path }, agent) =>
      origin + (agent === undefined ? path : attemptPath(rollout, attempt, agent)),
    work,
    needsNoKey,
    pause: () => admission.pause(),
    resume: () => admission.resume(),
    drained: () => admission.drained(),
    get counts() {
      return { ...counts, open: registry.open.length, inFlight: admission.inFlight }
    },
    async close() {
      admission.close()
      await Promise.all(registry.open.map((attempt) => attempt.close()))
      await serving?.close()
    },
  }
  return gateway
}

const inferenceRoutes: ReadonlySet<string> = new Set([
  '/chat/completions',
  '/responses',
  '/completions',
])

function models(id: string, known: readonly string[]): Response {
  if (id === '') return Response.json({ object: 'list', data: known.map(modelCard) })
  if (!known.includes(id)) throw modelNotFound(id, known)
  return Response.json(modelCard(id))
}

function modelCard(id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'tiltyard' }
}
