/**
 * What the gateway costs per call over a sampler that takes no time: in process through `fetch`, and over HTTP at 1, 32 and 512
 * connections beside an echo server. Each call brings a conversation of its own with 1,000 tokens. `--memory` measures 1,000
 * open attempts of 100 calls instead. `--cpu-time` holds load and server in one process and counts its CPU time instead of the
 * clock's, which is what a quiet machine with one core would show, however busy this one is. `--stub` serves a fixed answer for another proxy to stand before, and `--proxy <url>` loads
 * that proxy in the same run.
 *
 *   node --expose-gc --import tsx test/bench/gateway.ts [--seconds 3] [--memory] [--cpu-time] [--stub <port>] [--proxy <url>]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import type { Sampler } from '@tiltyard/core'
import { createGateway, serveGateway, type Attempt, type Gateway } from '@tiltyard/gateway'
import { charRenderer, charReply } from '@tiltyard/testkit'
import { Pool } from 'undici'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    memory: { type: 'boolean', default: false },
    'cpu-time': { type: 'boolean', default: false },
    stub: { type: 'string' },
    proxy: { type: 'string' },
    serve: { type: 'string' },
  },
})
const milliseconds = Number(values.seconds) * 1_000
const CALLS_PER_ATTEMPT = 100
const ATTEMPTS = 1_000
/** Attempts that hold their calls: an older one ends, as episodes do. */
const IN_USE = 64
const words = 'x'.repeat(990)
const ids = charReply('It is done.')
const logprobs = new Float32Array(ids.length).fill(-1)

const sampler: Sampler = {
  specVersion: 'sampler/1',
  version: { id: 'bench', step: 0 },
  contextWindow: 1_000_000,
  async sample({ onTokens }) {
    onTokens?.(0, ids, logprobs)
    return [{ ids, logprobs, stop: 'stop' }]
  },
  logprobs: async (prompt) => new Float32Array(prompt.length),
  async close() {},
}
const policy = { sampler, renderer: charRenderer(), sampling: {} }
const record = { conversation: async () => {}, reply: async () => {}, observation: async () => {} }

/** A chat completion as it is, which costs next to nothing to give. */
const fixed = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'policy',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'It is done.' }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 1_000, completion_tokens: 12, total_tokens: 1_012 },
})

interface Load {
  readonly name: string
  readonly origin: string
  readonly path: (call: number) => string
  readonly stream?: boolean
}

let calls = 0

/** Milliseconds that count. */
function now(): number {
  if (!values['cpu-time']) return performance.now()
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

function body(stream: boolean, number: number): string {
  const messages = [{ role: 'user', content: `${number} ${words}` }]
  return JSON.stringify({ model: 'policy', messages, ...(stream ? { stream } : {}) })
}

/** Calls for some seconds; prints calls per second and latencies. */
async function load(
  { name, origin, path, stream = false }: Load,
  connections: number,
  isShown = true,
): Promise<void> {
  const pool = new Pool(origin, { connections })
  const times: number[] = []
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-bench' }
  const open = origin === values.proxy ? headers : { 'content-type': 'application/json' }
  const call = async () => {
    const answer = await pool.request({
      method: 'POST',
      path: path(calls),
      body: body(stream, calls++),
      headers: open,
    })
    const text = await answer.body.text()
    if (answer.statusCode !== 200)
      throw new Error(`${name}: ${answer.statusCode} ${text.slice(0, 200)}`)
  }
  const clients = (each: () => Promise<void>) =>
    Promise.all(Array.from({ length: connections }, each))
  // Connections are open before the clock starts: a server under load takes in few new ones at a time.
  await clients(call)
  const began = now()
  const until = began + milliseconds
  await clients(async () => {
    while (now() < until) {
      const start = now()
      await call()
      times.push(now() - start)
    }
  })
  const seconds = (now() - began) / 1_000
  await pool.close()
  times.sort((a, b) => a - b)
  const quantile = (share: number) => times[Math.floor((times.length - 1) * share)]!.toFixed(1)
  if (!isShown) return
  console.log(
    `${name}${stream ? ', streaming' : ''}, ${connections} connections: ${Math.round(times.length / seconds)} calls/s, p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms`,
  )
}

function attemptPath(call: number): string {
  return `/r/${Math.floor(call / CALLS_PER_ATTEMPT) % ATTEMPTS}/a/0/v1/chat/completions`
}

/** Opens a gateway; gives its origin. */
async function serveTheGateway(): Promise<string> {
  const gateway = createGateway({ requireKey: false, maxConcurrentCalls: 1_024 })
  const attempts: Attempt[] = []
  const open = (at: number) => {
    let isNew = true
    const retire = async () => {
      if (!isNew) return
      isNew = false
      const past = (at + ATTEMPTS - IN_USE) % ATTEMPTS
      await attempts[past]!.close()
      open(past)
    }
    const watched = { ...record, conversation: retire }
    attempts[at] = gateway.open({ rollout: String(at), policy, record: watched })
  }
  for (let at = 0; at < ATTEMPTS; at += 1) open(at)
  await serveGateway(gateway)
  return gateway.origin
}

type Server = 'gateway' | 'echo'

async function serveHere(server: Server): Promise<string> {
  return server === 'gateway' ? serveTheGateway() : `http://127.0.0.1:${await serveFixed(0)}`
}

/** A server in a process of its own, as long as this one lives. */
async function serveApart(server: Server): Promise<string> {
  const child = fork(fileURLToPath(import.meta.url), ['--serve', server])
  const [origin] = (await once(child, 'message')) as [string]
  return origin
}

async function serveFixed(port: number): Promise<number> {
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json').end(fixed)
    })
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** CPU time of a call through `fetch`, on one thread. */
async function inProcess(): Promise<void> {
  for (const stream of [false, true]) {
    const gateway = createGateway()
    let attempt = gateway.open({ rollout: 'r', policy, record })
    let done = 0
    let before = process.cpuUsage()
    const until = now() + milliseconds + 1_000
    for (let turn = 0; now() < until; turn += 1) {
      if (turn % CALLS_PER_ATTEMPT === 0) {
        // Weakly held things are only let go between turns of the event loop.
        await setImmediate()
        await attempt.close()
        attempt = gateway.open({ rollout: `r${turn}`, policy, record })
      }
      await (await post(gateway, attempt.path, attempt.key, body(stream, calls))).text()
      calls += 1
      done += 1
      if (turn !== 2_000) continue
      before = process.cpuUsage()
      done = 0
    }
    const { user, system } = process.cpuUsage(before)
    const each = (user + system) / done
    console.log(`through fetch${stream ? ', streaming' : ''}: ${Math.round(each)} µs of CPU a call`)
  }
}

function post(gateway: Gateway, path: string, key: string, text: string): Promise<Response> {
  return gateway.fetch(`${gateway.origin}${path}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: text,
  })
}

/** Memory of open attempts whose conversations grow call by call. */
async function memory(): Promise<void> {
  const gateway = createGateway()
  const before = usedMebibytes()
  for (let rollout = 0; rollout < 1_000; rollout += 1) {
    const attempt = gateway.open({ rollout: `r${rollout}`, policy, record })
    const messages: object[] = []
    await setImmediate()
    for (let call = 0; call < 100; call += 1) {
      messages.push({
        role: 'user',
        content: `call ${call}, a short question of fifty characters.`,
      })
      await (await post(gateway, attempt.path, attempt.key, JSON.stringify({ messages }))).text()
      messages.push({ role: 'assistant', content: 'It is done.' })
    }
  }
  await setTimeout(500)
  const all = usedMebibytes() - before
  console.log(
    `1,000 open attempts of 100 calls: ${Math.round(all)} MiB, ${((all * 1_024) / 100_000).toFixed(1)} KiB a call`,
  )
  await gateway.close()
}

function usedMebibytes(): number {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 2 ** 20
}

async function main(): Promise<void> {
  await inProcess()
  const serve = values['cpu-time'] ? serveHere : serveApart
  const gateway: Load = {
    name: 'gateway',
    origin: await serve('gateway'),
    path: attemptPath,
  }
  const echo: Load = {
    name: 'echo',
    origin: await serve('echo'),
    path: () => '/v1/chat/completions',
  }
  // What comes first is slow everywhere: nothing is compiled yet.
  for (const each of [echo, gateway]) await load(each, 32, false)
  for (const connections of [1, 32, 512]) {
    await load(echo, connections)
    await load(gateway, connections)
    await load({ ...gateway, stream: true }, connections)
    if (values.proxy === undefined) continue
    await load(
      { name: 'proxy', origin: values.proxy, path: () => '/v1/chat/completions' },
      connections,
    )
  }
}

if (values.serve !== undefined) {
  process.on('disconnect', () => process.exit(0))
  process.send?.(await serveHere(values.serve as Server))
} else if (values.stub !== undefined) await serveFixed(Number(values.stub))
else if (values.memory) await memory()
else {
  await main()
  process.exit(0)
}
