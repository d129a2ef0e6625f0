import { expect, test } from 'vitest'
import { z } from 'zod'

import { bundleEnv, defineTool, ToolError, type ToolContext } from '../src/index.ts'
import { createRedaction } from '../src/play/redaction.ts'
import { makeBundle } from './support/make-bundle.ts'
import { answers, call, calls, started, stepContext } from './support/play.ts'

const KEY = 'sk-SENTINEL-"quoted"-0815'

/** A tool that says what it was given, in the way that the argument names. */
const ask = defineTool({
  name: 'ask',
  parameters: z.object({ how: z.string() }),
  run({ how }, { secrets }: ToolContext) {
    const said = `401 for ${secrets['KEY']}`
    if (how === 'text') return said
    if (how === 'json') return { said, pin: secrets['PIN']! }
    if (how === 'tool error') throw new ToolError(said)
    if (how === 'shown') throw new ToolError('no', { shown: `{"e": "${said}"}` })
    if (how === 'cause') throw new Error('fetch failed', { cause: new Error(said) })
    // So long that a record of the error ends within the key.
    throw new RangeError('x'.repeat(1_980) + said)
  },
})

async function opened(members: Partial<typeof ask> = {}, onToolError?: (error: unknown) => void) {
  const bundle = await makeBundle({
    manifest: { secrets: ['KEY', 'PIN'], limits: { toolOutputChars: 60, toolOutputKeep: 'tail' } },
    load: { env: { KEY, PIN: '1234' } },
    module: { tools: [{ ...ask, ...members }], verifiers: { always: () => 1 } },
  })
  const options = onToolError === undefined ? {} : { onToolError }
  return started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, ...options }))
}

test('F64: a secret of the bundle is in no result and in no error that a tool gives', async () => {
  const env = await opened()
  const ways = ['text', 'json', 'tool error', 'shown']
  expect(await answers(env, ...ways.map((how) => call('ask', { how })))).toEqual([
    '401 for [secret]',
    '{"said":"401 for [secret]","pin":"1234"}',
    'error: 401 for [secret]',
    '{"e": "401 for [secret]"}',
  ])
})

test('F65: it is taken out before anything is cut: of a key on the border no part is left', async () => {
  const told: unknown[] = []
  const env = await opened({}, (error) => told.push(error))
  const step = await env.step(calls(call('ask', { how: 'thrown' })), stepContext())
  expect(step.calls?.[0]?.error).toMatch(/^x+401 for \[secret\]$/)
  expect(JSON.stringify(step)).not.toMatch(/SENTINEL|sk-/)
  expect(told).toMatchObject([{ name: 'RangeError' }])
  expect((told[0] as Error).stack).not.toContain('SENTINEL')
})

test('F64: a failure has none either, nor has what caused it', async () => {
  for (const how of ['thrown', 'cause']) {
    const env = await opened({ fatal: true })
    const failure: unknown = await env
      .step(calls(call('ask', { how })), stepContext())
      .catch((error: unknown) => error)
    const { message, cause } = failure as Error
    expect(message).toContain('tool "ask" failed')
    expect(cause).toMatchObject({ name: how === 'thrown' ? 'RangeError' : 'Error' })
    expect(`${message} ${(cause as Error).stack} ${String((cause as Error).cause)}`).not.toContain(
      'SENTINEL',
    )
  }
})

test('an error without a secret is handed on as it is, causes in a ring and all', () => {
  const { error, text } = createRedaction({ KEY })
  const ring = new Error('a')
  ring.cause = new Error('b', { cause: ring })
  expect(error(ring)).toBe(ring)
  expect(error(`thrown ${KEY}`)).toBe('thrown [secret]')
  expect(error(undefined)).toBeUndefined()
  expect(createRedaction({}).text(KEY)).toBe(KEY)
  expect(text(KEY + KEY)).toBe('[secret][secret]')
})

test('of two secrets one of which begins with the other neither leaves a part', () => {
  const { text } = createRedaction({ A: 'abcdefgh', B: 'abcdefgh-and-more' })
  expect(text('abcdefgh-and-more abcdefgh')).toBe('[secret] [secret]')
})

test('F80: 32 MB that are nearly the secret all along are gone through once', () => {
  const near = KEY.slice(0, -1)
  const long = near.repeat(Math.ceil((32 << 20) / near.length)) + KEY
  const clean = createRedaction({ KEY }).text(long)
  expect(clean).toHaveLength(long.length - KEY.length + '[secret]'.length)
  expect(clean.endsWith(`${near}[secret]`)).toBe(true)
})
