import { ConfigError, NotFoundError } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { agentSource, createGateway, type AgentContext } from '../src/index.ts'
import { ask, tasks } from './support/agent.ts'
import { playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

async function one(): Promise<number> {
  return 1
}

describe('an agent source', () => {
  test('lists its splits in order, and tells a wrong one which there are', async () => {
    const source = agentSource({
      gateway: createGateway(),
      agent: async () => 1,
      tasks: { train: [tasks[0]!], dev: [tasks[1]!] },
    })
    const ids = async (split: string) => {
      const found: string[] = []
      for await (const { id } of source.tasks(split)) found.push(id)
      return found
    }
    expect([await ids('all'), await ids('train'), await ids('dev')]).toEqual([
      ['a', 'b'],
      ['a'],
      ['b'],
    ])
    await expect(ids('trainn')).rejects.toThrow(NotFoundError)
    await expect(ids('trainn')).rejects.toThrow('did you mean "train"?')
  })

  test('has another fingerprint when tasks, version or scoring change', () => {
    const gateway = createGateway()
    const base = agentSource({ gateway, agent: one, tasks })
    expect(agentSource({ gateway, agent: one, tasks }).fingerprint).toBe(base.fingerprint)
    const others = [
      agentSource({ gateway, agent: one, tasks: [{ id: 'a' }] }),
      agentSource({ gateway, agent: one, tasks, version: '2' }),
      agentSource({ gateway, agent: one, tasks, verifiers: { done: () => 1 } }),
    ]
    expect(new Set([base, ...others].map(({ fingerprint }) => fingerprint)).size).toBe(4)
  })

  test('takes tasks whatever their ids are', async () => {
    const id = `${'a'.repeat(59)}😀/../\ud800 b`
    const agent = async (_: object, context: AgentContext) => {
      expect((await ask(context)).status).toBe(200)
      return 1
    }
    const source = agentSource({ gateway: createGateway(), agent, tasks: [{ id }] })
    expect((await playFirst(source, byteSampler(['x']))).end).toEqual({ kind: 'completed' })
    const broken = agentSource({ gateway: createGateway(), agent, tasks: [{ id: '\ud800' }] })
    expect((await playFirst(broken, byteSampler(['x']))).end).toEqual({ kind: 'completed' })
  })

  test('refuses unknown options, doubled ids and no tasks', () => {
    const gateway = createGateway()
    expect(() => agentSource({ gateway, agent: one, tasks: [] })).toThrow(ConfigError)
    expect(() => agentSource({ gateway, agent: one, tasks: [{ id: 'a' }, { id: 'a' }] })).toThrow(
      'unique',
    )
    const wrong = { gateway, agent: one, tasks, verifier: {} }
    expect(() => agentSource(wrong)).toThrow('did you mean "verifiers"?')
  })
})
