import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { promptIds } from '@tiltyard/core'
import { remoteAgent, serveGateway } from '@tiltyard/gateway'
import { scriptedSampler } from '@tiltyard/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { describeWith, program } from '../../support/machine.ts'
import { runOk } from '../../support/run.ts'
import { openAttempt } from './attempts.ts'
import { learn, progress, WORKER_KEY } from './learn.ts'

/** Installing takes seconds where nothing else runs. */
const PATIENCE_MS = 600_000
const CLIENT = 'openai==2.54.0'
const agent = join(import.meta.dirname, 'python-agent.py')
const worker = join(import.meta.dirname, 'python-worker.py')

describeWith(program('python3'), 'the official Python client', (python) => {
  let folder: string
  let installed: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tiltyard-python-'))
    const patient = { cwd: folder, timeout: PATIENCE_MS }
    await runOk(python, ['-m', 'venv', folder], patient)
    installed = join(folder, 'bin/python')
    const options = ['--quiet', '--disable-pip-version-check']
    await runOk(installed, ['-m', 'pip', 'install', ...options, CLIENT], patient)
  })
  afterAll(async () => {
    await rm(folder, { recursive: true })
  })

  test('plays tools, streams, refers to responses, leaves, rewards, and stops when the attempt has ended', async () => {
    const replies = [
      '⟦add {"a": 1, "b": 2}⟧⟦add {"b": 4, "a": 3}⟧',
      'Seven, grüße 👋.',
      'Streamed 👋.',
      'one',
      'two',
      'left',
    ]
    const { gateway, attempt, model, replies: recorded } = openAttempt(scriptedSampler(replies))
    const server = await serveGateway(gateway)
    try {
      const env = { OPENAI_BASE_URL: model.baseURL, OPENAI_API_KEY: model.apiKey }
      const seen: unknown = JSON.parse(await runOk(installed, [agent], { cwd: folder, env }))
      expect(seen).toEqual({
        played: 'Seven, grüße 👋.',
        streamed: 'Streamed 👋.',
        responded: 'two',
        closed: true,
      })
      expect(attempt.rewards.scores()).toEqual({ reward: { value: 0.5 } })
      expect(recorded.map(({ restart }) => restart)).toEqual([
        undefined,
        undefined,
        'new_conversation',
        'new_conversation',
        undefined,
        'new_conversation',
      ])
      const [first, second] = recorded
      const before = [...promptIds(first!.prompt), ...first!.sample.ids]
      expect([...promptIds(second!.prompt)].slice(0, before.length)).toEqual(before)
    } finally {
      await server.close()
    }
  })

  test('learns on the embedded backend, as workers that fetch their tasks', async () => {
    let child: ChildProcess | undefined
    try {
      const rewards = await learn((gateway) => {
        const env = { GATEWAY: gateway.origin, WORKER_KEY }
        child = spawn(installed, [worker], { cwd: folder, env, stdio: 'ignore' })
        return remoteAgent({ gateway })
      })
      expect(progress(rewards)).toBeGreaterThan(0.3)
    } finally {
      child?.kill('SIGKILL')
      if (child !== undefined) await once(child, 'close')
    }
  })
})
