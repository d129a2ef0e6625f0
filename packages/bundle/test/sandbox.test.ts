import type { ExecResult, Sandbox, SandboxOptions, SandboxProvider } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { bundleEnv, bundleSource, type Verifier } from '../src/index.ts'
import { makeBundle } from './support/make-bundle.ts'
import { answers, call, calls, quiet, scored, started, stepContext } from './support/play.ts'

/** A provider whose sandboxes echo the script, and a log of what was done to them. */
function echoSandboxes(result: Partial<ExecResult> = {}) {
  const log: string[] = []
  const opened: SandboxOptions[] = []
  const box: Sandbox = {
    exec: (script, { signal } = {}) => {
      log.push(`exec ${script}${signal === undefined ? '' : ' with signal'}`)
      const plain = { exitCode: 0, stdout: `${script}\n`, stderr: '', droppedBytes: 0, ms: 1 }
      return Promise.resolve({ ...plain, ...result })
    },
    write: (path, data) => {
      log.push(`write ${path} ${data.length}`)
      return Promise.resolve()
    },
    read: () => Promise.resolve(new Uint8Array()),
    close: () => {
      log.push('close')
      return Promise.resolve()
    },
  }
  const sandboxes: SandboxProvider = {
    specVersion: 'sandbox/1',
    name: 'echo',
    holds: [],
    open: (options = {}) => {
      opened.push(options)
      options.signal?.addEventListener('abort', () => void box.close())
      return Promise.resolve(box)
    },
    close: () => {
      log.push('close all')
      return Promise.resolve()
    },
  }
  return { log, opened, sandboxes }
}

const bundleWith = (verify: Verifier = () => 1) =>
  makeBundle({
    module: { verifiers: { always: verify } },
    manifest: { sandbox: { files: 'work', commandMs: 500 } },
    files: { 'work/notes/a.txt': 'abc', 'work/b.txt': 'b' },
  })

/** What the model is shown of a script with this result. */
async function shown(result: Partial<ExecResult>) {
  const { sandboxes } = echoSandboxes(result)
  const bundle = await bundleWith()
  const env = await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes }))
  return (await answers(env, call('bash', { command: 'x' })))[0]
}

describe('a bundle that works in a sandbox', () => {
  test('offers bash, whose script runs in a sandbox with the bundle’s files and limits', async () => {
    const { sandboxes, log, opened } = echoSandboxes()
    const bundle = await bundleWith()
    const env = bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes })
    const { tools } = await env.start(quiet())
    expect(tools?.map(({ name }) => name)).toEqual(['bash'])
    expect(await answers(env, call('bash', { command: 'ls' }))).toEqual(['ls'])
    expect(opened[0]?.limits).toEqual({ commandMs: 500 })
    expect(log).toEqual(['write b.txt 1', 'write notes/a.txt 3', 'exec ls with signal'])
  })

  test('shows errors, what was left out, the exit code, and the limit that ended a script', async () => {
    expect(await shown({ stdout: '', stderr: 'no such file\n', exitCode: 2 })).toBe(
      'no such file\n[exit code 2]',
    )
    expect(await shown({ droppedBytes: 9 })).toBe('x\n[9 bytes of output were left out]')
    expect(await shown({ stdout: '', exitCode: 137, stopped: 'time' })).toBe(
      '[stopped: time limit]',
    )
  })

  test('a sandbox that fails is a failure of the episode, not the model’s to read', async () => {
    const { sandboxes } = echoSandboxes()
    const broken: SandboxProvider = {
      ...sandboxes,
      open: async () => ({
        ...(await sandboxes.open()),
        exec: () => Promise.reject(new Error('the machine is gone')),
      }),
    }
    const bundle = await bundleWith()
    const env = await started(
      bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes: broken }),
    )
    const stepping = env.step(calls(call('bash', { command: 'x' })), stepContext())
    await expect(stepping).rejects.toMatchObject({ code: 'TOOL' })
  })

  test('E5, F70: verifiers work in it after the end; it is closed once, by close', async () => {
    const { sandboxes, log } = echoSandboxes()
    const bundle = await bundleWith(
      async ({ sandbox }) => (await sandbox!.exec('test')).exitCode === 0,
    )
    const env = await started(bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes }))
    expect((await scored(env)).scores).toEqual({ always: { value: 1 } })
    expect(log).not.toContain('close')
    await env.close()
    await env.close()
    expect(log.filter((entry) => entry === 'close')).toHaveLength(1)
  })

  test('E5, F27: a play whose time is up leaves it to the verifiers', async () => {
    const { sandboxes, log } = echoSandboxes()
    const bundle = await bundleWith(
      async ({ sandbox }) => (await sandbox!.exec('test')).exitCode === 0,
    )
    const env = bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes })
    const time = new AbortController()
    await env.start(time.signal)
    time.abort(new Error('its time is up'))
    await env.end({ kind: 'cut', by: 'episode_time' })
    expect((await env.score(quiet())).scores).toEqual({ always: { value: 1 } })
    expect(log).not.toContain('close')
  })

  test('E9: it is closed whenever it comes, if the episode was called off meanwhile', async () => {
    const { sandboxes, log } = echoSandboxes()
    let open = () => {}
    const slow: SandboxProvider = {
      ...sandboxes,
      async open(options) {
        await new Promise<void>((resolve) => {
          open = resolve
        })
        return await sandboxes.open(options)
      },
    }
    const bundle = await bundleWith()
    const env = bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes: slow })
    const stop = new AbortController()
    const starting = env.start(stop.signal)
    stop.abort(new Error('enough'))
    await env.end({ kind: 'cancelled' })
    await env.close()
    open()
    await expect(starting).rejects.toThrow('enough')
    expect(log).toEqual(['close'])
  })

  test('it is closed when its files can’t be written', async () => {
    const { sandboxes, log } = echoSandboxes()
    const full: SandboxProvider = {
      ...sandboxes,
      open: async () => ({
        ...(await sandboxes.open()),
        write: () => Promise.reject(new Error('no space left')),
      }),
    }
    const bundle = await bundleWith()
    const env = bundleEnv(bundle, bundle.tasks.get('one'), { seed: 1, sandboxes: full })
    await expect(env.start(quiet())).rejects.toThrow('no space left')
    await env.close()
    expect(log).toEqual(['close'])
  })

  test('its source closes the provider', async () => {
    const { sandboxes, log } = echoSandboxes()
    const source = bundleSource(await bundleWith(), { sandboxes })
    await source.prepare({ tools: true, images: true, changedHead: true }, quiet())
    await source.close()
    expect(log).toEqual(['close all'])
  })
})
