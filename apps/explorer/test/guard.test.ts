import { StoreError, type RunIndex } from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { problemAnswer } from '../src/api/answers.ts'
import { isLoopbackHost } from '../src/server/guard.ts'
import { explorer } from './support/ask.ts'
import { episodeEvent, indexOf } from './support/events.ts'

const id = 'train/step-0000/g0/m0/a0'

/** Status and message of a refusal. */
async function refusal(answer: Response | Promise<Response>) {
  const response = await answer
  const { error } = problemAnswer.parse(await response.json())
  return { status: response.status, ...error }
}

describe('who is answered', () => {
  test.each(['localhost', 'localhost:8080', '127.0.0.1:1', '127.1.2.3', '[::1]:9', 'LOCALHOST'])(
    '%s is this machine',
    (host) => {
      expect(isLoopbackHost(host)).toBe(true)
    },
  )

  test.each([
    undefined,
    '',
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.evil.example:80',
    '10.0.0.1',
    'evil.example:127.0.0.1',
    '[::2]',
  ])('%s is not', (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  })

  test('a name that was made to point here is refused, for the page and for the data', async () => {
    const { send } = explorer(memoryRunIndex())
    for (const path of ['/', '/api/runs', '/assets/page-1.js'])
      expect(await refusal(send(path, { host: 'rebound.example' }))).toMatchObject({
        status: 403,
        code: 'HOST',
      })
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s is refused', async (method) => {
    const response = await explorer(memoryRunIndex()).send('/api/runs', { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  test('every answer forbids foreign scripts, frames and embedding', async () => {
    const { send } = explorer(memoryRunIndex())
    for (const path of ['/', '/api/runs', '/api/run', '/api/none', '/assets/none.js']) {
      const { headers } = await send(path)
      const policy = headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'; script-src 'self';")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.has('access-control-allow-origin')).toBe(false)
    }
  })
})

describe('what is asked', () => {
  test.each([
    ['run', 'run: '],
    ['run?run=', 'run: '],
    ['run?run=a&run=b', 'run: '],
    ['run?run=a&extra=1', 'extra'],
    ['groups?run=a&split=train&step=-1', 'step: expected a whole number'],
    ['groups?run=a&split=test&step=1', 'split: '],
    ['episodes?run=a&limit=100000', 'limit: '],
    ['episodes?run=a&limit=0', 'limit: '],
    ['episodes?run=a&minReward=low', 'minReward: expected a number'],
    ['episodes?run=a&after=here', 'they look like train/step-0007/g3/m1/a0'],
    [`episode?run=a&id=..%2F..%2Fetc%2Fpasswd`, 'they look like train/step-0007/g3/m1/a0'],
    [`episode/text?run=a&id=${id}&message=0&part=__proto__&from=0`, 'part: expected content'],
    [`metrics?run=a&names=${'x,'.repeat(30)}x`, 'names'],
  ])('%s is a mistake, and told as one', async (path, message) => {
    const { send } = explorer(await indexOf({ a: [] }))
    const answer = await refusal(send(`/api/${path}`))
    expect(answer).toMatchObject({ status: 400, code: 'BAD_REQUEST' })
    expect(answer.message).toContain(message)
  })

  test.each([
    ['run?run=b', 'unknown run "b"'],
    [`episode?run=a&id=${id}`, id],
    [`episode/messages?run=b&id=${id}&from=0`, 'unknown run "b"'],
    ['numbers?run=a&split=train&step=3', 'no metrics of train, step 3'],
    ['nothing', '/api/nothing'],
  ])('%s is not there, and what is missing is named', async (path, message) => {
    const { send } = explorer(await indexOf({ a: [] }))
    const answer = await refusal(send(`/api/${path}`))
    expect(answer).toMatchObject({ status: 404, code: 'NOT_FOUND' })
    expect(answer.message).toContain(message)
  })

  test('parts of an episode that it doesn’t have are not there', async () => {
    const { send } = explorer(await indexOf({ a: [episodeEvent()] }))
    const of = `run=a&id=${id}`
    for (const path of [
      `episode/text?${of}&message=99&part=content&from=0`,
      `episode/text?${of}&message=1&part=call:0&from=0`,
      `episode/tokens?${of}&sequence=1&from=0`,
    ])
      expect((await refusal(send(`/api/${path}`))).status).toBe(404)
  })

  test.each(['../../etc/passwd', '..', '%2e%2e%2f', 'C:\\x', '/etc/passwd', 'a\0b'])(
    'a run named %j is looked up as a name and nothing else',
    async (run) => {
      const { send } = explorer(await indexOf({ a: [] }))
      const answer = await refusal(send(`/api/run?${new URLSearchParams({ run }).toString()}`))
      expect([answer.status, answer.code]).toEqual([404, 'NOT_FOUND'])
    },
  )

  test('a store that fails is told in its own words; what else fails is told to the terminal alone', async () => {
    const failing = (error: Error): RunIndex => ({
      ...memoryRunIndex(),
      async run() {
        throw error
      },
    })
    const store = explorer(failing(new StoreError('the bucket is gone')))
    expect(await refusal(store.send('/api/run?run=a'))).toEqual({
      status: 503,
      code: 'STORE',
      message: 'the bucket is gone',
    })
    const warned: string[] = []
    const logger = {
      debug() {},
      info() {},
      error() {},
      warn: (_: string, fields?: object) => void warned.push(JSON.stringify(fields)),
    }
    const broken = explorer(failing(new Error('secret place')), { logger })
    const answer = await refusal(broken.send('/api/run?run=a'))
    expect([answer.status, answer.message]).toEqual([
      500,
      'the explorer failed at this; its terminal says why',
    ])
    expect(warned.join()).toContain('secret place')
  })
})

describe('the page', () => {
  test('is one document at every address of its own', async () => {
    const { send } = explorer(memoryRunIndex())
    for (const path of ['/', '/runs/desk', '/runs/desk/episodes/train/step-0001/g0/m0/a0', '/../x'])
      expect(await (await send(path)).text()).toBe('<title>page</title>')
  })

  test('has files that may be kept; what isn’t one of them is not there', async () => {
    const { send } = explorer(memoryRunIndex())
    const script = await send('/assets/page-1.js')
    expect(await script.text()).toBe('run()')
    expect(script.headers.get('cache-control')).toContain('immutable')
    for (const path of ['/assets/other.js', '/assets/..%2f..%2fpackage.json', '/assets/%2e%2e/x'])
      expect((await send(path)).status).not.toBe(500)
    expect((await send('/assets/other.js')).status).toBe(404)
    expect((await send('/api/runs')).headers.get('cache-control')).toBe('no-store')
  })

  test('an index of another version is refused', () => {
    const other = { ...memoryRunIndex(), specVersion: 'run-index/2' } as unknown as RunIndex
    expect(() => explorer(other)).toThrow('run-index/1')
  })
})
