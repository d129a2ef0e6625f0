import { readdirSync, readFileSync } from 'node:fs'

import { systemClock } from '@tiltyard/core'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  agentSource,
  commandAgent,
  createGateway,
  remoteAgent,
  serveGateway,
  type Gateway,
  type GatewayServer,
} from '../src/index.ts'
import { eventually, openFirst, playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

const WORKER_KEY = 'key-of-the-workers'

let gateway: Gateway
let server: GatewayServer
beforeEach(async () => {
  gateway = createGateway({ workerKey: WORKER_KEY })
  server = await serveGateway(gateway)
})
afterEach(async () => {
  await gateway.close()
  await server.close()
})

function node(program: string, graceMs = 10_000) {
  const PATH = process.env['PATH'] ?? ''
  return commandAgent({
    command: [process.execPath, '--input-type=module', '--eval', program],
    env: { PATH },
    graceMs,
  })
}

const agent = `
  let text = ''
  for await (const piece of process.stdin) text += piece
  const { id } = JSON.parse(text)
  const ask = (path, body) => fetch(process.env.OPENAI_BASE_URL + path, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + process.env.OPENAI_API_KEY },
    body: JSON.stringify(body),
  }).then((response) => response.json())
`

test('a command finds task and policy, and its output reaches the verifiers', async () => {
  const program = `${agent}
    const { choices } = await ask('/chat/completions', {
      model: process.env.OPENAI_MODEL,
      messages: [{ role: 'user', content: id }],
    })
    await ask('/rollout/reward', { value: 0.5 })
    console.log(id, choices[0].message.content)`
  const source = agentSource({
    gateway,
    agent: node(program),
    tasks: [{ id: 'a' }],
    rewards: ['reward'],
    verifiers: { said: ({ output }) => (output === 'a hello\n' ? 1 : 0) },
  })
  const { end, outcome, record } = await playFirst(source, byteSampler(['hello']))
  expect(end).toEqual({ kind: 'completed' })
  expect(outcome.scores).toEqual({ reward: { value: 0.5 }, said: { value: 1 } })
  expect(record.replies).toHaveLength(1)
})

test('§18.103 F64 a command’s environment has what it was given and nothing of the trainer’s', async () => {
  const program = 'console.log(JSON.stringify(Object.keys(process.env).sort()))'
  const names: string[] = []
  const source = agentSource({
    gateway,
    agent: node(program),
    tasks: [{ id: 'a' }],
    verifiers: {
      names: ({ output }) => names.push(...(JSON.parse(output as string) as string[])),
    },
  })
  process.env['TRAINER_SECRET'] = 'x'
  await playFirst(source, byteSampler(['x']))
  delete process.env['TRAINER_SECRET']
  expect(names).toContain('OPENAI_AGENTS_DISABLE_TRACING')
  expect(names).toContain('PATH')
  expect(names).not.toContain('TRAINER_SECRET')
  expect(names).not.toContain('HOME')
})

test('a command that ends with another exit code has failed', async () => {
  const source = agentSource({ gateway, agent: node('process.exit(3)'), tasks: [{ id: 'a' }] })
  const { end } = await playFirst(source, byteSampler(['x']))
  expect(end).toMatchObject({ kind: 'failed', phase: 'agent' })
  expect(JSON.stringify(end)).toContain('exit code 3')
})

test('a command has ended although a server that it started goes on complaining', async () => {
  const sleeper = JSON.stringify('setInterval(() => {}, 1000)')
  const program = `
    import { spawn } from 'node:child_process'
    const stdio = ['ignore', 'ignore', 'inherit']
    spawn(process.execPath, ['--eval', ${sleeper}], { stdio }).unref()
    process.exit(0)`
  const source = agentSource({ gateway, agent: node(program, 0), tasks: [{ id: 'a' }] })
  const { end } = await playFirst(source, byteSampler(['x']))
  expect(end).toEqual({ kind: 'completed' })
})

test('§18.4 what a failed command complained of is told, without a key or a part of one', async () => {
  const program = `
    const key = process.env.OPENAI_API_KEY
    console.error(key.repeat(100), 'no module named planner', key)
    process.exitCode = 1`
  const source = agentSource({ gateway, agent: node(program), tasks: [{ id: 'a' }] })
  const { end } = await playFirst(source, byteSampler(['x']))
  const { message } = (end as { error: { message: string } }).error
  expect(message).toMatch(/exit code 1.*standard error: .*no module named planner \[key\]$/)
  expect(message).not.toMatch(/[\w-]{20}/)
})

test('§18.79 at its deadline a command is ended with its whole tree, what left its group too', async () => {
  const variable = `TILTYARD_TREE_${process.pid}`
  const sleeper = 'setInterval(() => {}, 1000)'
  const program = `
    import { spawn } from 'node:child_process'
    process.on('SIGTERM', () => {})
    const start = (detached) => spawn(process.execPath, ['--eval', ${JSON.stringify(sleeper)}], { detached, stdio: 'ignore' })
    start(false)
    start(true).unref()
    setInterval(() => {}, 1000)`
  const PATH = process.env['PATH'] ?? ''
  const command = commandAgent({
    command: [process.execPath, '--input-type=module', '--eval', program],
    env: { PATH, [variable]: '1' },
    graceMs: 100,
  })
  const source = agentSource({ gateway, agent: command, tasks: [{ id: 'a' }] })
  const alive = () =>
    readdirSync('/proc').filter((entry) => {
      if (!/^\d+$/.test(entry)) return false
      try {
        return readFileSync(`/proc/${entry}/environ`, 'latin1').includes(`${variable}=1`)
      } catch {
        return false
      }
    }).length
  const deadline = new AbortController()
  const playing = playFirst(source, byteSampler(['x']), { signal: deadline.signal })
  await eventually(() => alive() === 3)
  deadline.abort(new Error('time is up'))
  const { end } = await playing
  expect(end).toEqual({ kind: 'cut', by: 'episode_time' })
  await eventually(() => alive() === 0)
})

async function post(path: string, key: string, body: object): Promise<Response> {
  const url = path.startsWith('http') ? path : gateway.origin + path
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  })
}

interface FetchedWork {
  readonly task: { readonly id: string }
  readonly seed: number
  readonly base_url: string
  readonly api_key: string
  readonly model: string
}

test('a remote agent fetches work, plays it, rewards it and says that it is done', async () => {
  const source = agentSource({ gateway, agent: remoteAgent({ gateway }), tasks: [{ id: 'a' }] })
  const [{ end, outcome, record }] = await Promise.all([
    playFirst(source, byteSampler(['hi'])),
    playRemotely(),
  ])
  expect(end).toEqual({ kind: 'completed' })
  expect(outcome.scores).toEqual({ reward: { value: 1 } })
  expect(record.replies).toHaveLength(1)
})

test('a remote agent that says it failed has failed; work needs the worker’s key, and there may be none', async () => {
  expect((await post('/work/next', 'another-key', {})).status).toBe(401)
  expect((await post('/work/next', WORKER_KEY, {})).status).toBe(204)
  const source = agentSource({ gateway, agent: remoteAgent({ gateway }), tasks: [{ id: 'a' }] })
  const playing = playFirst(source, byteSampler(['hi']))
  const work = (await (await post('/work/next', WORKER_KEY, { wait: 10 })).json()) as FetchedWork
  await post(`${work.base_url}/rollout/end`, work.api_key, { status: 'failed', error: 'no disk' })
  const { end } = await playing
  expect(end).toMatchObject({ kind: 'failed', phase: 'agent' })
  expect(JSON.stringify(end)).toContain('no disk')
})

test('work that no remote agent took has no score, whatever verifiers make of nothing', async () => {
  const verifiers = { right: () => 0 }
  const remote = remoteAgent({ gateway })
  const source = agentSource({ gateway, agent: remote, tasks: [{ id: 'a' }], verifiers })
  const deadline = new AbortController()
  const playing = playFirst(source, byteSampler(['x']), { signal: deadline.signal })
  await expect.poll(() => gateway.counts.open).toBe(1)
  deadline.abort(new Error('time is up'))
  const { outcome } = await playing
  expect(outcome.scores).toEqual({ right: { unscored: 'no agent began to play' } })
})

test('§18.88 a silent remote agent is given up, but not while a call of it is under way', async () => {
  const { simulatedClock } = await import('@tiltyard/testkit')
  const clock = simulatedClock()
  const own = createGateway({ clock, workerKey: WORKER_KEY })
  const agentOptions = { gateway: own, unresponsiveMs: 60_000, clock }
  const source = agentSource({
    gateway: own,
    agent: remoteAgent(agentOptions),
    tasks: [{ id: 'a' }],
  })
  const sampler = byteSampler(['late'], { before: () => clock.sleep(300_000) })
  const playing = playFirst(source, sampler)
  const ask = () =>
    own.fetch(`${own.origin}/work/next`, {
      method: 'POST',
      headers: { 'x-api-key': WORKER_KEY },
      body: '{}',
    })
  // Waiting for work is on the simulated clock, so until there is some it is asked for again.
  let claimed = await ask()
  while (claimed.status === 204) {
    await systemClock.sleep(1)
    claimed = await ask()
  }
  const work = (await claimed.json()) as FetchedWork
  const call = own.fetch(`${work.base_url}/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': work.api_key },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'go' }] }),
  })
  await clock.advance(299_000)
  expect(own.counts.open).toBe(1)
  await clock.advance(2_000)
  expect((await call).status).toBe(200)
  await clock.advance(61_000)
  expect((await playing).end).toMatchObject({ kind: 'failed' })
})

test('a play that is closed before it began leaves nothing behind', async () => {
  const source = agentSource({ gateway, agent: node('0'), tasks: [{ id: 'a' }] })
  const episode = await openFirst(source)
  await episode.close()
  await expect.poll(() => gateway.counts.open).toBe(0)
})

async function playRemotely(): Promise<Response> {
  const work = (await (await post('/work/next', WORKER_KEY, { wait: 10 })).json()) as FetchedWork
  expect(work).toMatchObject({ task: { id: 'a' }, seed: 5, model: 'policy' })
  const messages = [{ role: 'user', content: work.task.id }]
  await post(`${work.base_url}/chat/completions`, work.api_key, { model: work.model, messages })
  await post(`${work.base_url}/rollout/heartbeat`, work.api_key, {})
  await post(`${work.base_url}/rollout/reward`, work.api_key, { value: 1 })
  await post(`${work.base_url}/rollout/end`, work.api_key, { output: 'done' })
  return post(`${work.base_url}/rollout/end`, work.api_key, {})
}
