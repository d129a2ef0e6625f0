/** A Tinker service that does nothing, quickly: for what clients cost by themselves. Prints its address; ends with its input. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Tokens of each sequence and of each sample, as the clients of this folder send and expect them. */
const SEQUENCE = 8_192
const SAMPLE = 512

const PROTOBUF = 'application/x-protobuf'

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Buffer.from([...bytes, rest])
}

function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | 2), varint(content.length), content])
}

function integer(number: number, value: number): Buffer {
  return Buffer.concat([varint(number << 3), varint(value)])
}

/** How many data a request has: its fields 3, passed over one by one. */
function countData(body: Buffer): number {
  let count = 0
  let at = 0
  const read = () => {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = body[at++]!
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  while (at < body.length) {
    const tag = read()
    const length = tag % 8 === 1 ? 8 : read()
    if (tag % 8 !== 0) at += length
    if (Math.floor(tag / 8) === 3) count += 1
  }
  return count
}

const outputs = new Map<number, Buffer>()

/** Log-probabilities for so many sequences. */
function outputOf(count: number): Buffer {
  const made = outputs.get(count)
  if (made !== undefined) return made
  const offsets = BigInt64Array.from({ length: count + 1 }, (_, index) =>
    BigInt(4 * SEQUENCE * index),
  )
  const tensor = Buffer.concat([
    field(1, Buffer.alloc(4 * SEQUENCE * count)),
    field(2, Buffer.from(offsets.buffer)),
    integer(3, 1),
  ])
  const record = Buffer.concat([
    field(2, Buffer.concat([field(1, Buffer.from('logprobs')), field(2, tensor)])),
    integer(3, count),
  ])
  const loss = Buffer.concat([
    field(1, Buffer.from('loss:sum')),
    Buffer.from([0x11]),
    Buffer.alloc(8),
  ])
  const output = Buffer.concat([field(2, record), field(3, loss)])
  outputs.set(count, output)
  return output
}

const sample = field(
  1,
  Buffer.concat([
    integer(1, 1),
    field(2, Buffer.alloc(4 * SAMPLE)),
    field(3, Buffer.alloc(4 * SAMPLE)),
  ]),
)

const results = new Map<string, Buffer | object>()
let next = 0

function submit(result: Buffer | object): object {
  const id = String((next += 1))
  results.set(id, result)
  return { request_id: id, sample_sequence_ids: ['s'] }
}

function answer(path: string, body: Buffer): Buffer | object {
  if (path.endsWith('/create_session')) return { session_id: 's', type: 'create_session' }
  if (path.endsWith('/create_model')) return submit({ model_id: 's:train:0', type: 'create_model' })
  if (path.endsWith('/create_sampling_session'))
    return { sampling_session_id: 's:sample:0', type: 'create_sampling_session' }
  if (path.includes('/samplers/')) return { sampler_id: 's:sample:0', base_model: 'toy' }
  if (path.endsWith('/get_info'))
    return { model_id: 's:train:0', model_data: { model_name: 'toy' }, type: 'get_info' }
  if (path.endsWith('/get_server_capabilities'))
    return { supported_models: [{ model_name: 'toy', max_context_length: 100_000 }] }
  if (path.endsWith('/forward_backward')) return submit(outputOf(countData(body)))
  if (path.endsWith('/asample')) return submit(sample)
  if (path.endsWith('/telemetry')) return { status: 'accepted' }
  if (path.endsWith('/retrieve_future')) {
    const { request_id: id } = JSON.parse(body.toString()) as { request_id: string }
    return results.get(id)!
  }
  return {}
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const said = answer(request.url ?? '', await bodyOf(request))
  const bytes = Buffer.isBuffer(said) ? said : Buffer.from(JSON.stringify(said))
  response.writeHead(200, {
    'content-type': Buffer.isBuffer(said) ? PROTOBUF : 'application/json',
    'content-length': bytes.length,
  })
  response.end(bytes)
}

const server = createServer((request, response) => void respond(request, response))
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
