import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below what systems give to whoever asks for any port, so that no connection takes one between its being found and its being used. */
const LOWEST = 10_000
const COUNT = 20_000

/** Ports of this machine that nobody listens on, for programs that must be told theirs. Where we can, we listen on port 0 instead. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const found: number[] = []
  // Two processes that look at the same time begin at different places.
  for (let port = LOWEST + ((process.pid * 97) % COUNT); found.length < count; port += 1)
    if (await isFree(port)) found.push(port)
  return found
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
