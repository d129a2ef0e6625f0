import { TiltyardError } from '@tiltyard/core'

/** How a refusal or failure is answered over HTTP, in the form that OpenAI's clients read. */
export interface ApiErrorOptions {
  readonly status: number
  /** Family of the error, for instance `invalid_request_error`. */
  readonly type: string
  readonly code: string
  /** The field of the request that is at fault. */
  readonly param?: string
  /** Whether trying again can help. Default false; clients obey `x-should-retry`. */
  readonly retry?: boolean
  /** Seconds, 1 to 30. */
  readonly retryAfter?: number
  readonly cause?: unknown
}

/** An error with its HTTP answer. The message goes to the agent: it holds names, numbers and advice, never bodies or keys. */
export class ApiError extends TiltyardError {
  readonly answer: ApiErrorOptions

  constructor(message: string, answer: ApiErrorOptions) {
    super(answer.code, message, answer.cause === undefined ? {} : { cause: answer.cause })
    this.answer = answer
  }
}

export function invalidKey(): ApiError {
  return new ApiError('no valid key: send the key of an open attempt as a bearer token', {
    status: 401,
    type: 'authentication_error',
    code: 'invalid_api_key',
  })
}

export function attributionMismatch(): ApiError {
  return new ApiError('the path names another rollout or attempt than the key belongs to', {
    status: 403,
    type: 'permission_error',
    code: 'attribution_mismatch',
  })
}

export function foreignRequest(): ApiError {
  return new ApiError('without a key only this machine and this gateway’s own page may call', {
    status: 403,
    type: 'permission_error',
    code: 'foreign_request',
  })
}

export function rolloutClosed(): ApiError {
  return new ApiError('the attempt has ended; nothing of it is sampled or scored any more', {
    status: 403,
    type: 'permission_error',
    code: 'rollout_closed',
  })
}

export function budgetExceeded(what: string, limit: number): ApiError {
  return new ApiError(`the rollout has used up its budget: ${what} (${limit})`, {
    status: 400,
    type: 'invalid_request_error',
    code: 'rollout_budget_exceeded',
  })
}

/** Holds the words by which clients and harnesses know a full context, so that they compact and go on. */
export function contextLengthExceeded(window: number, prompt: number): ApiError {
  return new ApiError(
    `prompt is too long: this model's maximum context length is ${window} tokens, the prompt has ${prompt}`,
    {
      status: 400,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'messages',
    },
  )
}

export function invalidRequest(message: string, param?: string): ApiError {
  return refusal('invalid_request', message, param)
}

export function unsupportedParameter(param: string, message: string): ApiError {
  return refusal('unsupported_parameter', message, param)
}

export function unsupportedContent(param: string, kind: string): ApiError {
  return refusal('unsupported_content', `content of type "${kind}" is not taken; send text`, param)
}

export function unusableImage(param: string, why: string): ApiError {
  return refusal(
    'unsupported_content',
    `${param} has an image that can't be used: ${why}; send a data: URL with a PNG or a JPEG in base64`,
    param,
  )
}

/** Images for a model that has none. */
export function noImages(param: string): ApiError {
  return refusal('unsupported_content', 'this model takes no images; send text', param)
}

function refusal(code: string, message: string, param?: string): ApiError {
  return new ApiError(message, {
    status: 400,
    type: 'invalid_request_error',
    code,
    ...(param === undefined ? {} : { param }),
  })
}

export function requestTooLarge(limit: number): ApiError {
  return refusal('request_too_large', `the body has more than ${limit} bytes`)
}

export function modelNotFound(model: string, known: readonly string[]): ApiError {
  return new ApiError(`no model "${model.slice(0, 100)}"; there is ${known.join(', ')}`, {
    status: 404,
    type: 'invalid_request_error',
    code: 'model_not_found',
    param: 'model',
  })
}

export function routeNotFound(method: string, path: string, routes: readonly string[]): ApiError {
  return new ApiError(
    `nothing answers ${method} ${path.slice(0, 200)}; there is ${routes.join(', ')}`,
    { status: 404, type: 'invalid_request_error', code: 'not_found' },
  )
}

export function overloaded(message: string): ApiError {
  return new ApiError(message, {
    status: 429,
    type: 'rate_limit_error',
    code: 'overloaded',
    retry: true,
    retryAfter: 1,
  })
}

export function samplerFailed(cause: unknown): ApiError {
  return new ApiError('the sampler failed', {
    status: 502,
    type: 'api_error',
    code: 'sampler_failed',
    retry: true,
    cause,
  })
}

/** Deterministic, so that trying again can't help. */
export function rendererFailed(cause: unknown): ApiError {
  return new ApiError('the renderer failed on this conversation', {
    status: 500,
    type: 'api_error',
    code: 'renderer_failed',
    cause,
  })
}

export function policyUpdating(): ApiError {
  return new ApiError('the policy is being updated', {
    status: 503,
    type: 'api_error',
    code: 'policy_updating',
    retry: true,
    retryAfter: 5,
  })
}

export function shuttingDown(): ApiError {
  return new ApiError('the gateway is shutting down', {
    status: 503,
    type: 'api_error',
    code: 'shutting_down',
  })
}

/** A sampled reply could not be recorded. Nothing after it could be trusted, so it ends the attempt. */
export function recordFailed(cause: unknown): ApiError {
  return new ApiError('the attempt can’t be recorded, so it goes on no further', {
    status: 500,
    type: 'api_error',
    code: 'record_failed',
    cause,
  })
}

/** The call was given up: its client went away and nobody came back for it. */
export function abandoned(): ApiError {
  return new ApiError('nobody waits for this call any more', {
    status: 499,
    type: 'api_error',
    code: 'abandoned',
  })
}

/** Whatever was thrown, as an answer. What isn't ours is a fault of the gateway; its message stays inside. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError('the gateway failed', {
    status: 500,
    type: 'api_error',
    code: 'internal_error',
    cause: error,
  })
}

/** The body that every error has. */
export function errorBody(error: ApiError): string {
  const { type, code, param = null } = error.answer
  return JSON.stringify({ error: { message: error.message, type, param, code } })
}

export function errorResponse(error: ApiError): Response {
  const { status, retry = false, retryAfter } = error.answer
  return new Response(errorBody(error), {
    status,
    headers: {
      'content-type': 'application/json',
      'x-should-retry': String(retry),
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    },
  })
}
