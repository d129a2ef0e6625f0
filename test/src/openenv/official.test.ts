/** The official Python clients against our server, and our client against the official Python server. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import type { AssistantMessage, Env, JsonObject, TaskSource } from '@tiltyard/core'
import { openenvServer, openenvSource, type OpenEnvServer } from '@tiltyard/openenv'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { rightRule, sumsSource } from '../../../packages/openenv/test/support/sums.ts'
import { describeWith } from '../../support/machine.ts'
import { OPENENV_VERSIONS, openenv, prepare, python } from '../interop/environments.ts'

const run = promisify(execFile)
const script = (name: string) => fileURLToPath(new URL(`python/${name}`, import.meta.url))
const MINUTES = 60_000

const quiet = () => new AbortController().signal
const context = () => ({ signal: quiet(), toolCallsLeft: 99 })
const call = (name: string, args: JsonObject): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'c', name, arguments: args }],
})

for (const version of OPENENV_VERSIONS) {
  describeWith(python(11), `OpenEnv ${version}`, () => {
    let interpreter: string
    let server: OpenEnvServer
    let base: string
    const processes: ChildProcess[] = []

    beforeAll(async () => {
      interpreter = await prepare(openenv(version))
      server = openenvServer({ source: sumsSource(), reward: rightRule })
      base = await server.listen()
    }, 15 * MINUTES)
    afterAll(async () => {
      for (const each of processes) each.kill('SIGKILL')
      await server.close()
    })

    /** The official server over one of its environments. */
    async function official(kind: 'gym' | 'mcp'): Promise<TaskSource> {
      const child = spawn(interpreter, [script('serve.py'), kind], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      processes.push(child)
      const port = await new Promise<string>((resolve, reject) => {
        createInterface({ input: child.stdout }).once('line', resolve)
        child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
      })
      return await openenvSource({
        url: `http://127.0.0.1:${port}`,
        tasks: { all: [{ id: 'only', reset: {} }] },
        reward: kind === 'gym' ? 'sum' : 'last',
      })
    }

    const open = async (source: TaskSource, seed: number) =>
      (await source.open({ id: 'only', fingerprint: '' }, { seed, signal: quiet() })) as Env

    test('its clients play our server: frames, tools, rewards, errors', async () => {
      const { stdout } = await run(interpreter, [script('play.py'), base])
      expect(JSON.parse(stdout)).toEqual({
        frames: {
          prompt: 'What is 7 + 2?',
          tool: '9',
          turn: 1,
          reward: 0.5,
          done: true,
          steps: 3,
          refused:
            'Server error: the episode is over; reset begins another (code: EXECUTION_ERROR)',
        },
        tools: {
          tools: ['add', 'fail', 'end_turn'],
          total: expect.stringContaining('9') as string,
          failed: expect.stringContaining('bad: z') as string,
        },
      })
      await expect.poll(() => server.activeSessions).toBe(0)
    })

    test('our Env plays its tool environment', async () => {
      const env = await open(await official('mcp'), 1)
      const { tools } = await env.start(quiet())
      expect(tools?.map(({ name }) => name)).toEqual(['add', 'fail'])
      const steps = [call('add', { a: 1, b: 2 }), call('fail', { why: 'z' }), call('nope', {})]
      const shown: string[] = []
      for (const reply of steps) {
        const { messages = [] } = await env.step(reply, context())
        shown.push(...messages.map(({ content }) => content as string))
      }
      expect(shown).toEqual([
        '3',
        expect.stringMatching(/^error: .*z/) as string,
        expect.stringMatching(/^error: .*nope/) as string,
      ])
      expect(await env.step({ role: 'assistant', content: 'done' }, context())).toEqual({
        done: true,
      })
      await env.end({ kind: 'completed' })
      await env.close()
    })

    test('our Env plays its gym environment, and sums its rewards', async () => {
      const source = await official('gym')
      const play = async (...numbers: readonly number[]) => {
        const env = await open(source, 4)
        const { messages } = await env.start(quiet())
        expect(messages).toEqual([{ role: 'user', content: 'Count on from 4.' }])
        let done = false
        for (const number of numbers)
          ({ done } = await env.step(call('act', { number }), context()))
        await env.end({ kind: 'completed' })
        const { scores } = await env.score(quiet())
        await env.close()
        return { done, reward: scores['reward'] }
      }
      const [right, wrong] = await Promise.all([play(5, 6), play(5, 7)])
      expect(right).toEqual({ done: true, reward: { value: 1 } })
      expect(wrong).toEqual({ done: true, reward: { value: 0.5 } })
    })
  })
}
