/** An answer of the store, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

export interface ListPage {
  readonly objects: readonly ListedObject[]
  /** Folders below the prefix, each with its slash at the end. */
  readonly prefixes: readonly string[]
  readonly isTruncated: boolean
  readonly nextToken: string | undefined
}

export interface ListedObject {
  readonly key: string
  readonly bytes: number
  /** Milliseconds since 1970. */
  readonly modified: number
}

/** Reads the answer to ListObjectsV2 with `encoding-type=url`. The few elements of it need no parser of all XML. */
export function parseListPage(body: Uint8Array): ListPage {
  const xml = Buffer.from(body).toString('utf8')
  if (!xml.includes('<ListBucketResult')) throw new Error('the answer is no listing')
  return {
    objects: elements(xml, 'Contents').map((item) => ({
      key: decodeKey(element(item, 'Key') ?? ''),
      bytes: Number(element(item, 'Size') ?? 0),
      modified: Date.parse(element(item, 'LastModified') ?? ''),
    })),
    prefixes: elements(xml, 'CommonPrefixes').map((item) =>
      decodeKey(element(item, 'Prefix') ?? ''),
    ),
    isTruncated: element(xml, 'IsTruncated') === 'true',
    nextToken: element(xml, 'NextContinuationToken'),
  }
}

/** `SlowDown`, `NoSuchBucket`…; undefined when the body tells none. */
export function errorCodeOf({ body }: Answer): string | undefined {
  return element(Buffer.from(body).toString('utf8'), 'Code')
}

/** Status, code and message of an error, on one line. */
export function describeAnswer(answer: Answer): string {
  const message = element(Buffer.from(answer.body).toString('utf8'), 'Message')
  return [String(answer.status), errorCodeOf(answer), message && `(${message.slice(0, 200)})`]
    .filter((part) => part !== undefined && part !== '')
    .join(' ')
}

function elements(xml: string, name: string): readonly string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, 'g'))].map(
    ([, content = '']) => content,
  )
}

function element(xml: string, name: string): string | undefined {
  const content = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return content === undefined ? undefined : unescapeXml(content)
}

const entities: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
}

function unescapeXml(text: string): string {
  return text.replaceAll(
    /&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi,
    (whole: string, hex?: string, decimal?: string, name = '') => {
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
      if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
      return entities[name] ?? whole
    },
  )
}

function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
