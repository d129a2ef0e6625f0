import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'

import { goldPlayer, loadBundle, playTask } from '@tiltyard/bundle'
import { type AssistantMessage, type Env, isScored } from '@tiltyard/core'
import { openenvSource } from '@tiltyard/openenv'
import { describe, expect, test } from 'vitest'

import { exitCodes } from '../../src/exit.ts'
import { main } from '../../src/main.ts'
import { importByUrl } from '../../src/recipe.ts'
import { run } from '../support/terminal.ts'

const desk = fileURLToPath(new URL('../../bundles/desk', import.meta.url))

/** The program, serving, until the returned function ends it and gives its exit code. */
async function served(args: readonly string[]) {
  const stdout = new PassThrough()
  const soft = new AbortController()
  const ended = main(['serve', 'openenv', ...args], {
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    env: {},
    interrupts: { soft: soft.signal, hard: new AbortController().signal },
  })
  let shown = ''
  const url = await new Promise<string>((resolve, reject) => {
    stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString()
      const [, found] = /at (http:\S+)/.exec(shown) ?? []
      if (found !== undefined) resolve(found)
    })
    ended.then((code) => reject(new Error(`the program ended with ${code}`)), reject)
  })
  return {
    url,
    stop: () => {
      soft.abort()
      return ended
    },
  }
}

describe('serve openenv', () => {
  test('E27: a task played over the wire has the reward and the scores that it has in process', async () => {
    const bundle = await loadBundle(desk, { importModule: importByUrl })
    const id = bundle.tasks.ids[0]!
    const steps = bundle.steps.map(({ name }) => name)
    const direct = await playTask(bundle, id, goldPlayer(bundle.tasks.get(id)), { seed: 5 })
    const program = await served([desk])
    const source = await openenvSource({ url: program.url, steps })
    const signal = new AbortController().signal
    const env = (await source.open({ id, fingerprint: '' }, { seed: 5, signal })) as Env
    const { messages } = await env.start(signal)
    expect(messages).toEqual(direct.conversation.messages.slice(0, messages.length))
    const replies = direct.conversation.messages.filter(
      (message): message is AssistantMessage => message.role === 'assistant',
    )
    for (const reply of replies) await env.step(reply, { signal, toolCallsLeft: 9 })
    await env.end({ kind: 'completed' })
    const { scores } = await env.score(signal)
    await env.close()
    expect(await program.stop()).toBe(exitCodes.success)
    expect(scores['reward']).toEqual({ value: 1 })
    for (const step of steps) {
      const [remote, local] = [scores[step]!, direct.outcome.scores[step]!]
      expect(isScored(remote) && isScored(local) && remote.value === local.value, step).toBe(true)
    }
  })

  test('a wrong folder, reward or host is a mistake before anything is served', async () => {
    expect((await run(['serve', 'openenv', 'nowhere'])).code).toBe(exitCodes.usage)
    const reward = await run(['serve', 'openenv', desk, '--reward', 'anwser'])
    expect([reward.code, reward.stderr]).toEqual([
      exitCodes.usage,
      expect.stringContaining('"answer"'),
    ])
    const host = await run(['serve', 'openenv', desk, '--host', '0.0.0.0'])
    expect([host.code, host.stderr]).toEqual([
      exitCodes.usage,
      expect.stringContaining('asks for no key'),
    ])
  })
})
