import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** What a real store won't do on demand. */
export type Fault =
  /** Refuses with this status and code. */
  | { readonly status: number; readonly code: string; readonly retryAfter?: number }
  /** Never answers. */
  | 'stall'
  /** Drops the connection before anything is done. */
  | 'reset'
  /** Does what was asked and drops the connection. */
  | 'lost-answer'

export interface FakeRequest {
  readonly method: string
  readonly key: string
  readonly isList: boolean
  /** Counts from 1. */
  readonly number: number
}

export interface FakeS3Options {
  readonly fault?: (request: FakeRequest) => Fault | undefined
  /** Puts succeed whatever their condition says. */
  readonly ignoresConditions?: boolean
  /** Keys of a page. Default 1000. */
  readonly pageSize?: number
  /** Truncated pages tell no token. */
  readonly losesTokens?: boolean
}

export interface FakeS3 {
  readonly endpoint: string
  readonly bucket: string
  readonly objects: Map<string, StoredObject>
  /** Requests so far, those with a fault too. */
  readonly requests: readonly FakeRequest[]
  /** May be exchanged while it runs. */
  options: FakeS3Options
  /** Ends what is stalled. */
  dropConnections(): void
  stop(): Promise<void>
}

interface StoredObject {
  readonly content: Buffer
  readonly modified: Date
}

/** A bucket in memory behind real sockets, as far as a run index uses one. It checks no signature. */
export async function startFakeS3(options: FakeS3Options = {}): Promise<FakeS3> {
  const objects = new Map<string, StoredObject>()
  const requests: FakeRequest[] = []
  const bucket = 'runs'
  const server = createServer((request, response) => {
    void handle(request, response)
  })

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://fake')
    const key = decodeURIComponent(url.pathname.slice(`/${bucket}/`.length))
    const isList = url.searchParams.has('list-type')
    const asked = { method: request.method ?? '', key, isList, number: requests.length + 1 }
    requests.push(asked)
    const content = await bodyOf(request)
    const fault = fake.options.fault?.(asked)
    if (fault === 'stall') return
    if (fault === 'reset') {
      request.socket.destroy()
      return
    }
    if (typeof fault === 'object') {
      if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
      response.writeHead(fault.status).end(errorXml(fault.code))
      return
    }
    const {
      status,
      headers = {},
      body = '',
    } = isList ? list(url.searchParams) : act(asked, request.headers, content)
    if (fault === 'lost-answer') request.socket.destroy()
    else response.writeHead(status, headers).end(body)
  }

  const act = (
    { method, key }: FakeRequest,
    headers: IncomingMessage['headers'],
    content: Buffer,
  ): FakeAnswer => {
    const stored = objects.get(key)
    if (method === 'PUT') {
      const isConditional = headers['if-none-match'] === '*' && !fake.options.ignoresConditions
      if (isConditional && stored !== undefined)
        return { status: 412, body: errorXml('PreconditionFailed') }
      objects.set(key, { content, modified: new Date() })
      return { status: 200 }
    }
    if (method === 'DELETE') {
      objects.delete(key)
      return { status: 204 }
    }
    if (stored === undefined) return { status: 404, body: errorXml('NoSuchKey') }
    return ranged(stored.content, headers.range)
  }

  const list = (query: URLSearchParams): FakeAnswer => {
    const { pageSize = 1_000, losesTokens = false } = fake.options
    const prefix = query.get('prefix') ?? ''
    const after = query.get('continuation-token') ?? ''
    const entries = entriesBelow(objects, prefix).filter((entry) => entry.name > after)
    const page = entries.slice(0, pageSize)
    const isTruncated = entries.length > pageSize
    const token = isTruncated && !losesTokens ? page.at(-1)?.name : undefined
    const items = page.map(({ name, stored }) =>
      stored === undefined
        ? `<CommonPrefixes><Prefix>${encodeURIComponent(name)}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${encodeURIComponent(name)}</Key><Size>${stored.content.length}</Size>` +
          `<LastModified>${stored.modified.toISOString()}</LastModified></Contents>`,
    )
    const next =
      token === undefined ? '' : `<NextContinuationToken>${token}</NextContinuationToken>`
    return {
      status: 200,
      body: `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${next}${items.join('')}</ListBucketResult>`,
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const fake: FakeS3 = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket,
    objects,
    requests,
    options,
    dropConnections: () => server.closeAllConnections(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return fake
}

interface FakeAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** Objects, and folders for those that lie deeper, in order of name. */
function entriesBelow(objects: ReadonlyMap<string, StoredObject>, prefix: string) {
  const entries = new Map<string, StoredObject | undefined>()
  for (const [key, stored] of objects) {
    if (!key.startsWith(prefix)) continue
    const slash = key.indexOf('/', prefix.length)
    if (slash === -1) entries.set(key, stored)
    else entries.set(key.slice(0, slash + 1), undefined)
  }
  return [...entries]
    .map(([name, stored]) => ({ name, stored }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function ranged(content: Buffer, range: string | undefined): FakeAnswer {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? []
  if (range === undefined) return { status: 200, body: content }
  const start = first === '' ? Math.max(0, content.length - Number(last)) : Number(first)
  if (start >= content.length) return { status: 416, body: errorXml('InvalidRange') }
  return {
    status: 206,
    body: content.subarray(start, first === '' ? undefined : Number(last) + 1),
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function errorXml(code: string): string {
  return `<Error><Code>${code}</Code><Message>by the fake</Message></Error>`
}
