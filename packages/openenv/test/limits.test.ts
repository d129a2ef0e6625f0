import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'

import type { Env, TaskSource } from '@tiltyard/core'
import { simulatedClock, type SimulatedClock } from '@tiltyard/testkit'
import { afterEach, expect, test } from 'vitest'

import { openenvServer, type OpenEnvServer, openenvSource } from '../src/index.ts'
import { rawClient } from './support/client.ts'
import { callAdd } from './support/served.ts'
import { rightRule, sumsSource } from './support/sums.ts'

// F74: what each of these limits does.

let server: OpenEnvServer | undefined
afterEach(() => server?.close())

/** Lets time pass until the work is done. */
async function passing<T>(clock: SimulatedClock, work: Promise<T>): Promise<T> {
  const over = Symbol('over')
  const settled = work.then(
    () => over,
    () => over,
  )
  const turn = async () => {
    await clock.advance(1_000)
    await new Promise(setImmediate)
  }
  while ((await Promise.race([settled, turn()])) !== over);
  return work
}

test('answerMs: a call that takes longer fails the episode; the next reset plays', async () => {
  const clock = simulatedClock()
  const source = sumsSource()
  server = openenvServer({ source, reward: rightRule, clock, limits: { answerMs: 5_000 } })
  const client = await rawClient(await server.listen())
  await client.ask({ type: 'reset' })
  const answer = await passing(clock, client.ask(callAdd(-1, 0)))
  expect(answer).toMatchObject({ type: 'error', data: { code: 'EXECUTION_ERROR' } })
  expect(JSON.stringify(answer)).toContain('after 5000 ms')
  expect(await client.ask({ type: 'reset' })).toMatchObject({ type: 'observation' })
})

test('toolMs: the environment is told how long a call may take', async () => {
  const inner = sumsSource()
  const told: (number | undefined)[] = []
  const source: TaskSource = {
    ...inner,
    async open(task, options) {
      const env = (await inner.open(task, options)) as Env
      return {
        ...env,
        step(reply, context) {
          told.push(context.toolMs)
          return env.step(reply, context)
        },
      }
    },
  }
  server = openenvServer({ source, reward: rightRule, limits: { toolMs: 700 } })
  const client = await rawClient(await server.listen())
  await client.ask({ type: 'reset' })
  await client.ask(callAdd(1, 2))
  expect(told).toEqual([700])
})

test('connectMs: a server that takes the connection and says nothing is given up', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const clock = simulatedClock()
  const source = await openenvSource({
    url: `http://127.0.0.1:${port}`,
    tasks: { all: [{ id: 't', reset: {} }] },
    connectMs: 3_000,
    clock,
    fetch: async () => Response.json({ action: { title: 'CallToolAction' } }),
  })
  const { signal } = new AbortController()
  const env = (await source.open({ id: 't', fingerprint: 't' }, { seed: 1, signal })) as Env
  await expect(passing(clock, env.start(signal))).rejects.toThrow(
    `gave up waiting for a connection to 127.0.0.1:${port} after 3000 ms`,
  )
  for (const socket of sockets) socket.destroy()
  silent.close()
})
