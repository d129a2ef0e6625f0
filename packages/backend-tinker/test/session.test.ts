import { simulatedClock } from '@tiltyard/testkit'
import { afterEach, describe, expect, test, vi } from 'vitest'

import { tinkerClient, type TinkerClient } from '../src/index.ts'
import { fakeService, json, type Answer } from './fake-service.ts'

async function beating(answer: Answer) {
  const clock = simulatedClock()
  const lines: string[] = []
  const log = (text: string) => {
    lines.push(text)
  }
  const beats: number[] = []
  const service = fakeService((asked) => {
    if (asked.path !== '/session_heartbeat') return undefined
    beats.push(clock.now())
    return answer(asked)
  })
  const logger = { debug: log, info: log, warn: log, error: log }
  const client = tinkerClient({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    clock,
    logger,
  })
  await client.session()
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      await clock.advance(1_000)
      await settle()
    }
  }
  return { client, beats, lines, pass }
}

function exchanging(secondsLeft: number, refuse: (key: string) => boolean = () => false) {
  let count = 0
  const service = fakeService(
    ({ path, headers }) => {
      if (path === '/auth/token') {
        count += 1
        return json({ jwt: token(secondsLeft, `t${count}`) })
      }
      if (path === '/client/config') return undefined
      return refuse(headers.get('x-api-key')!) ? json({ detail: 'invalid' }, 401) : undefined
    },
    { pjwt_auth_enabled: true },
  )
  const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'tml-k', fetch: service.fetch })
  return { service, client }
}

/** Lets promises settle that wait for no clock. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 0))

describe('#15 the heartbeat', () => {
  test('begins after ten seconds, comes each ten, ends with the client', async () => {
    const { client, beats, pass } = await beating(() => json({}))
    await pass(35)
    expect(beats).toEqual([10_000, 20_000, 30_000])
    await client.close()
    await pass(30)
    expect(beats).toHaveLength(3)
  })

  test('goes on through failures, and warns after two minutes of them', async () => {
    const { client, beats, lines, pass } = await beating(() => json({}, 500))
    await pass(120)
    expect(lines).toEqual([])
    await pass(20)
    expect(beats.length).toBeGreaterThanOrEqual(13)
    expect(lines[0]).toContain('not heard')
    await client.close()
  })

  test('tells that the session is over, once', async () => {
    const { client, beats, lines, pass } = await beating(() => json({ detail: 'x' }, 410))
    await pass(40)
    expect(beats).toHaveLength(1)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('session is over')
    await client.close()
  })
})

describe('the start', () => {
  test('services without settings calls are fine', async () => {
    const service = fakeService(({ path }) =>
      path.startsWith('/client/') ? json({ detail: 'not found' }, 404) : undefined,
    )
    const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch })
    await expect(client.session()).resolves.toBe('s')
    await client.close()
  })

  test('many first calls open one session', async () => {
    const service = fakeService(() => undefined)
    const client = tinkerClient({
      baseUrl: 'http://x.test',
      apiKey: 'k',
      fetch: service.fetch,
      tags: ['lab'],
      projectId: 'p',
      userMetadata: { owner: 'ann' },
    })
    await Promise.all([client.session(), client.session(), client.session()])
    expect(service.at('/create_session').map((one) => one.json)).toEqual([
      {
        tags: ['lab'],
        user_metadata: { owner: 'ann' },
        sdk_version: '0.38.0',
        project_id: 'p',
        type: 'create_session',
      },
    ])
    await client.close()
  })

  test('a start that failed is tried again by the next call', async () => {
    let tries = 0
    const service = fakeService(({ path }) => {
      if (path !== '/create_session') return undefined
      tries += 1
      return tries === 1 ? json({ detail: 'no' }, 403) : undefined
    })
    const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch })
    await expect(client.session()).rejects.toThrow('403')
    await expect(client.session()).resolves.toBe('s')
    await client.close()
  })

  test('what the service has to say is passed on', async () => {
    const said: string[] = []
    const service = fakeService(({ path }) =>
      path === '/create_session'
        ? json({ session_id: 's', info_message: 'hello', warning_message: 'old client' })
        : undefined,
    )
    const logger = {
      debug() {},
      error() {},
      info: (text: string) => void said.push(`info ${text}`),
      warn: (text: string) => void said.push(`warn ${text}`),
    }
    const client = tinkerClient({
      baseUrl: 'http://x.test',
      apiKey: 'k',
      fetch: service.fetch,
      logger,
    })
    await client.session()
    expect(said).toEqual(['info hello', 'warn old client'])
    await client.close()
  })
})

function token(secondsLeft: number, name: string): string {
  const claims = { exp: Date.now() / 1_000 + secondsLeft, name }
  return `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sig`
}

const endOf = (jwt: string) =>
  1_000 *
  (JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()) as { exp: number }).exp

/** Twenty callers. */
async function askAtOnce(client: TinkerClient): Promise<void> {
  await Promise.all(Array.from({ length: 20 }, () => client.rest.capabilities()))
}

afterEach(() => {
  vi.useRealTimers()
})

describe('#11 keys and tokens', () => {
  test('the key is exchanged only when the service says so, and not sent elsewhere then', async () => {
    const plain = fakeService(() => undefined)
    const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'tml-k', fetch: plain.fetch })
    await client.rest.capabilities()
    expect(plain.at('/auth/token')).toHaveLength(0)
    const { service, client: other } = exchanging(3_600)
    await other.rest.capabilities()
    const keys = service.asked.map(({ path, headers }) => [
      path,
      headers.get('x-api-key')!.slice(0, 3),
    ])
    expect(keys).toEqual([
      ['/client/config', 'tml'],
      ['/auth/token', 'tml'],
      ['/client/dynamic_config', 'eyJ'],
      ['/get_server_capabilities', 'eyJ'],
    ])
  })

  test('F46: a token about to end is renewed before it is used, once for all who wait', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { service, client } = exchanging(3_600)
    await askAtOnce(client)
    expect(service.at('/auth/token')).toHaveLength(1)
    vi.setSystemTime(Date.now() + 3_550_000)
    await askAtOnce(client)
    expect(service.at('/auth/token')).toHaveLength(2)
  })

  test('F46: with tokens of three seconds, twenty who ask for ten seconds are never refused, and five tokens are enough', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    let refusals = 0
    const { service, client } = exchanging(3, (key) => {
      const isOver = key.startsWith('eyJ') && Date.now() >= endOf(key)
      if (isOver) refusals += 1
      return isOver
    })
    const begin = Date.now()
    for (let passed = 0; passed <= 10_000; passed += 250) {
      vi.setSystemTime(begin + passed)
      await askAtOnce(client)
    }
    expect(refusals).toBe(0)
    expect(service.at('/auth/token').length).toBeLessThanOrEqual(5)
  })

  test('a token that is over by this machine’s clock is used until the service refuses it', async () => {
    const { service, client } = exchanging(-120)
    await askAtOnce(client)
    await askAtOnce(client)
    expect(service.at('/auth/token')).toHaveLength(1)
  })

  test('F46: a token refused before its end is replaced once; a second refusal is an error', async () => {
    const first: string[] = []
    const { service, client } = exchanging(3_600, (key) => {
      if (first.length === 0 && key.startsWith('eyJ')) first.push(key)
      return key === first[0]
    })
    await expect(client.rest.capabilities()).resolves.toBeDefined()
    expect(service.at('/auth/token')).toHaveLength(2)
    const never = exchanging(3_600, (key) => key.startsWith('eyJ'))
    await expect(never.client.rest.capabilities()).rejects.toMatchObject({ code: 'TINKER_KEY' })
    expect(never.service.at('/auth/token')).toHaveLength(2)
  })

  test('F46: a wrong key fails at once', async () => {
    const service = fakeService(() => json({ detail: 'no such key' }, 401))
    const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'tml-k', fetch: service.fetch })
    await expect(client.session()).rejects.toMatchObject({ code: 'TINKER_KEY', status: 401 })
    expect(service.asked).toHaveLength(1)
  })

  test('a function gives the key, and is asked again when it was refused', async () => {
    const keys = ['old-key', 'new-key']
    const service = fakeService(({ headers }) =>
      headers.get('x-api-key') === 'old-key' ? json({}, 401) : undefined,
    )
    const client = tinkerClient({
      baseUrl: 'http://x.test',
      apiKey: async () => keys.shift()!,
      fetch: service.fetch,
    })
    await expect(client.rest.capabilities()).resolves.toBeDefined()
    expect(keys).toEqual([])
  })
})
