import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { expect, test } from 'vitest'

import { tinkerClient } from '../src/index.ts'

test('F74: limits.connections bounds the connections of short calls', async () => {
  let connections = 0
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    setImmediate(() => response.end('{"supported_models": []}'))
  })
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = tinkerClient({
    baseUrl: `http://127.0.0.1:${port}`,
    apiKey: 'k',
    limits: { connections: 2 },
  })
  await Promise.all(Array.from({ length: 30 }, () => client.rest.capabilities()))
  expect(connections).toBe(2)
  await client.close()
  server.close()
})
