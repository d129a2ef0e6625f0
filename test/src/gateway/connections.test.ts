import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { root } from '../../support/workspace.ts'

/** More than Node lets wait by default (511), fewer than the files that a process may open (1,024). */
const AT_ONCE = 700

const program = `
import { createGateway, serveGateway } from '@tiltyard/gateway'
const { port } = await serveGateway(createGateway({ requireKey: false }))
console.log(port)
`

/** How many connections the system itself lets wait for a server; undefined where it doesn't tell. */
function systemLimit(): number | undefined {
  try {
    return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
  } catch {
    return undefined
  }
}

test.runIf((systemLimit() ?? 0) >= AT_ONCE)(
  'a batch of agents connects at once, though the gateway has no time for any of them',
  async () => {
    const server = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: join(root, 'test'),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [line] = (await once(server.stdout, 'data')) as [Buffer]
      server.kill('SIGSTOP')
      const sockets = Array.from({ length: AT_ONCE }, () => connect(Number(line), '127.0.0.1'))
      await Promise.all(sockets.map((socket) => once(socket, 'connect')))
      expect(sockets.every(({ connecting }) => !connecting)).toBe(true)
      for (const socket of sockets) socket.destroy()
    } finally {
      server.kill('SIGKILL')
    }
  },
)
