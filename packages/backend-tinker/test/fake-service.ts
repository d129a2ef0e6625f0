/** A Tinker service whose answers a test decides, behind `fetch`. */
export interface Asked {
  readonly method: string
  /** From `/api/v1` on. */
  readonly path: string
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** The body as JSON, where it is some. */
  readonly json: Record<string, unknown>
  readonly signal: AbortSignal
}

export type Answer = (asked: Asked) => Response | undefined | Promise<Response | undefined>

export interface FakeService {
  readonly fetch: typeof fetch
  /** Everything asked, in order. */
  readonly asked: readonly Asked[]
  /** What was asked under this path. */
  at(path: string): readonly Asked[]
}

export function json(value: object, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  })
}

export function protobuf(hex: string): Response {
  return new Response(Buffer.from(hex, 'hex'), {
    headers: { 'content-type': 'application/x-protobuf' },
  })
}

/** Answers the start of a session; everything else is the test's. */
export function fakeService(answer: Answer, flags: object = {}): FakeService {
  const asked: Asked[] = []
  const usual: Answer = ({ path }) => {
    if (path === '/client/config') return json(flags)
    if (path === '/client/dynamic_config') return json({})
    if (path === '/create_session') return json({ session_id: 's' })
    if (path === '/session_heartbeat') return json({})
    if (path.endsWith('/finish')) return json({ detail: 'not found' }, 404)
    if (path === '/get_server_capabilities')
      return json({ supported_models: [{ model_name: 'toy', max_context_length: 64 }] })
    return undefined
  }
  const send: typeof fetch = async (url, init = {}) => {
    const bytes = new Uint8Array(await new Response(init.body ?? null).arrayBuffer())
    const text = new TextDecoder().decode(bytes)
    const one: Asked = {
      method: init.method ?? 'GET',
      path: new Request(url).url.replace(/^.*\/api\/v1/, ''),
      headers: new Headers(init.headers),
      bytes,
      json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {},
      signal: init.signal!,
    }
    asked.push(one)
    return (await answer(one)) ?? (await usual(one)) ?? json({ detail: 'no such call' }, 404)
  }
  return {
    fetch: send,
    asked,
    at: (path) => asked.filter((one) => one.path === path),
  }
}

/** Never answers; ends when it is aborted, as a socket does. */
export function silence({ signal }: Asked): Promise<Response> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
