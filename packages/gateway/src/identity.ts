/** What a request's path says: labels, and what is asked for. */
export interface Place {
  readonly rollout?: string
  readonly attempt?: string
  readonly agent?: string
  /** Without base and `/v1`, for instance `/chat/completions`. */
  readonly route: string
}

const place = /^(?:\/r\/([^/]+)\/a\/([^/]+))?(?:\/as\/([^/]+))?(?:\/v1)*(\/.*)?$/

/** The path of an absolute URL as `Request` has it. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start === -1) return '/'
  const end = url.slice(start).search(/[?#]/)
  return end === -1 ? url.slice(start) : url.slice(start, start + end)
}

/** Clients differ in whether they add `/v1`, and slashes; a path with none, one or two of them means the same. */
export function placeOf(pathname: string): Place {
  const path = pathname.includes('//') ? pathname.replaceAll(/\/{2,}/g, '/') : pathname
  const [, rollout, attempt, agent, route = '/'] = place.exec(path) ?? []
  return {
    ...(rollout === undefined ? {} : { rollout: decode(rollout) }),
    ...(attempt === undefined ? {} : { attempt: decode(attempt) }),
    ...(agent === undefined ? {} : { agent: decode(agent) }),
    route: route.length > 1 ? route.replace(/\/+$/, '') : route,
  }
}

/** The path under which an attempt is reached. */
export function attemptPath(rollout: string, attempt: string, agent?: string): string {
  const labelled = agent === undefined ? '' : `/as/${encodeURIComponent(agent)}`
  return `/r/${encodeURIComponent(rollout)}/a/${encodeURIComponent(attempt)}${labelled}/v1`
}

/** Who asks, and what for. */
export interface Tags {
  readonly agent?: string
  readonly purpose?: string
}

/** The header's agent before the path's before the model's suffix (`policy#planner`). */
export function tagsOf(headers: Headers, path: Place, modelSuffix: string | undefined): Tags {
  const agent = headers.get('x-tiltyard-agent') ?? path.agent ?? modelSuffix
  const purpose = headers.get('x-tiltyard-purpose') ?? undefined
  return {
    ...(agent === undefined ? {} : { agent: agent.slice(0, MAX_TAG_CHARS) }),
    ...(purpose === undefined ? {} : { purpose: purpose.slice(0, MAX_TAG_CHARS) }),
  }
}

const MAX_TAG_CHARS = 100

/** `policy#planner` → the model and the agent's name. */
export function splitModel(model: string): { readonly model: string; readonly agent?: string } {
  const at = model.indexOf('#')
  return at === -1 ? { model } : { model: model.slice(0, at), agent: model.slice(at + 1) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function isLoopback(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || /^127(\.\d{1,3}){3}$/.test(host)
}

/**
 * Whether a request may come without a key: not when a page of another origin sends it, and not under a name that was made to
 * point here.
 */
export function isOwnRequest(request: Request, origin: string): boolean {
  const url = new URL(request.url)
  const from = request.headers.get('origin')
  const isKnown = isLoopback(url.hostname) || url.hostname === new URL(origin).hostname
  return isKnown && (from === null || from === url.origin)
}
