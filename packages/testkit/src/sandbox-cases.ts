import assert from 'node:assert/strict'

import type { Sandbox, SandboxLimits, SandboxProvider } from '@tiltyard/core'

import type { ConformanceCase } from './cases.ts'
import { refused } from './expect.ts'

export interface SandboxCasesOptions {
  /** A fresh provider for each case. */
  readonly create: () => SandboxProvider
  /** Value of some environment variable of this process; it must not be seen inside. */
  readonly planted: string
  /** Promises that it doesn't keep, with the reason. */
  readonly lacks?: Partial<Record<'background', string>>
}

/** Writes to a file for as long as it runs. */
const TICKING = 'while true; do echo tick >> ticks; sleep 0.1; done'

/** Nothing writes to that file any more. */
async function checkStill(sandbox: Sandbox): Promise<void> {
  const size = async () => Number((await sandbox.exec('cat ticks 2>/dev/null | wc -c')).stdout)
  const before = await size()
  await new Promise((resolve) => setTimeout(resolve, 500))
  assert.equal(await size(), before, 'something of a stopped command still runs')
}

/**
 * What every sandbox promises: files that last, nothing inherited, nothing shared, limits held, nothing left running. Not covered:
 * escapes that depend on the kind of sandbox; its own tests try those.
 */
export function sandboxCases({
  create,
  planted,
  lacks = {},
}: SandboxCasesOptions): readonly ConformanceCase[] {
  const holds = new Set<keyof SandboxLimits>(create().holds)
  const lacksLimit = (limit: keyof SandboxLimits) =>
    holds.has(limit) ? {} : { skip: `holds no limit on ${limit}` }
  const lacksPart = (part: 'background') => (lacks[part] === undefined ? {} : { skip: lacks[part] })
  const cases: readonly (Omit<ConformanceCase, 'run'> & {
    readonly limits?: SandboxLimits
    readonly play: (sandbox: Sandbox, provider: SandboxProvider) => Promise<void>
  })[] = [
    {
      name: 'a script gives its output, its errors and its exit code',
      play: async (sandbox) => {
        const result = await sandbox.exec('echo out; echo err >&2; exit 3')
        assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 3])
        assert.equal(result.stopped, undefined)
        assert.equal(result.droppedBytes, 0)
      },
    },
    {
      name: 'standard input reaches the script, and is empty by default',
      play: async (sandbox) => {
        assert.equal(
          (await sandbox.exec('cat', { stdin: 'lines\nof text\n' })).stdout,
          'lines\nof text\n',
        )
        assert.equal((await sandbox.exec('cat')).stdout, '')
      },
    },
    {
      name: 'files last from command to command; a change of directory does not',
      play: async (sandbox) => {
        await sandbox.exec('mkdir sub && cd sub && echo kept > file')
        assert.equal((await sandbox.exec('cat sub/file')).stdout, 'kept\n')
      },
    },
    {
      name: 'files go in and out byte for byte, their folders are made',
      play: async (sandbox) => {
        const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
        await sandbox.write("a folder/it's.bin", bytes)
        assert.deepEqual(Uint8Array.from(await sandbox.read("a folder/it's.bin", 1000)), bytes)
        assert.deepEqual(
          Uint8Array.from(await sandbox.read("a folder/it's.bin", 2)),
          bytes.slice(0, 2),
        )
        await sandbox.write('text', 'äß')
        assert.equal((await sandbox.exec('cat text')).stdout, 'äß')
      },
    },
    {
      name: 'F62: a path that leaves the working directory is refused, one that is not there is not found',
      play: async (sandbox) => {
        for (const path of ['../x', '/etc/passwd', 'a/../../x', '']) {
          await refused(() => sandbox.write(path, 'x'), ['CONFIG'], `write ${path}`)
          await refused(() => sandbox.read(path, 1), ['CONFIG'], `read ${path}`)
        }
        await refused(() => sandbox.read('nothing', 1), ['NOT_FOUND'], 'read nothing')
      },
    },
    {
      name: 'nothing of the environment is inherited',
      play: async (sandbox) => {
        const { stdout } = await sandbox.exec('env; cat /proc/self/environ 2>/dev/null')
        assert.ok(!stdout.includes(planted), 'a variable of this process is in the sandbox')
      },
    },
    {
      name: 'two sandboxes see nothing of each other',
      play: async (sandbox, provider) => {
        const other = await provider.open()
        await sandbox.exec('echo mine > file')
        await sandbox.exec('echo mine > /tmp/file 2>/dev/null')
        assert.equal((await other.exec('ls; ls /tmp 2>/dev/null')).stdout, '')
        await other.close()
      },
    },
    {
      name: 'F70: a command over its time is stopped, and nothing of it happens later',
      ...lacksLimit('commandMs'),
      play: async (sandbox) => {
        const result = await sandbox.exec(TICKING, { commandMs: 400 })
        assert.equal(result.stopped, 'time')
        await checkStill(sandbox)
      },
    },
    {
      name: 'a loop without end is stopped',
      limits: { commandMs: 3_000 },
      ...lacksLimit('commandMs'),
      play: async (sandbox) => {
        assert.equal((await sandbox.exec('while true; do :; done')).stopped, 'time')
        assert.equal((await sandbox.exec('echo well')).stdout, 'well\n')
      },
    },
    {
      name: 'F70: a process left behind is gone when its command is over',
      ...lacksPart('background'),
      play: async (sandbox) => {
        const result = await sandbox.exec(`(${TICKING}) & echo now`)
        assert.equal(result.stdout, 'now\n')
        await checkStill(sandbox)
      },
    },
    {
      name: 'output over its limit is dropped, counted, and does not stop the script',
      limits: { outputBytes: 1000 },
      ...lacksLimit('outputBytes'),
      play: async (sandbox) => {
        const result = await sandbox.exec(
          'for i in $(seq 1 500); do echo 123456789; done; echo kept > file',
        )
        assert.equal(result.stdout.length, 1000)
        assert.equal(result.droppedBytes, 4000)
        assert.equal((await sandbox.exec('cat file')).stdout, 'kept\n')
      },
    },
    {
      name: 'what fills the disk is stopped, and what it wrote can be removed',
      limits: { diskBytes: 1_000_000 },
      ...lacksLimit('diskBytes'),
      play: async (sandbox) => {
        const fill =
          'text=$(printf %0100000d 0); for i in $(seq 1 1000); do printf %s "$text" > file$i; sleep 0.01; done'
        for (let round = 1; round <= 2; round++) {
          assert.equal((await sandbox.exec(fill)).stopped, 'disk', `round ${round}`)
          const tidied = await sandbox.exec('rm file*; ls')
          assert.deepEqual([tidied.stopped, tidied.exitCode, tidied.stdout], [undefined, 0, ''])
          assert.equal((await sandbox.exec('echo well > note; cat note; rm note')).stdout, 'well\n')
        }
      },
    },
    {
      name: 'an aborted command is stopped and says so',
      play: async (sandbox) => {
        const controller = new AbortController()
        setTimeout(() => controller.abort(), 100)
        const result = await sandbox.exec('sleep 60', { signal: controller.signal })
        assert.equal(result.stopped, 'aborted')
        assert.ok(result.ms < 40_000, `it took ${result.ms} ms`)
      },
    },
    {
      name: 'closing stops what runs, may be repeated, and ends all use',
      play: async (sandbox) => {
        const running = sandbox.exec('sleep 60')
        await new Promise((resolve) => setTimeout(resolve, 100))
        await Promise.all([sandbox.close(), sandbox.close()])
        assert.equal((await running).stopped, 'aborted')
        await refused(() => sandbox.exec('true'), ['STATE'], 'exec after close')
        await refused(() => sandbox.read('x', 1), ['STATE'], 'read after close')
      },
    },
  ]
  const unheld: readonly ConformanceCase[] = (['memoryBytes', 'processes'] as const)
    .filter((limit) => !holds.has(limit))
    .map((limit) => ({
      name: `a limit on ${limit} is refused, since it isn't held`,
      run: async () => {
        await refused(() => create().open({ limits: { [limit]: 1000 } }), ['UNSUPPORTED'], limit)
      },
    }))
  return [
    ...cases.map(({ name, skip, limits, play }) => ({
      name,
      ...(skip === undefined ? {} : { skip }),
      run: async () => {
        const provider = create()
        try {
          await play(await provider.open(limits === undefined ? {} : { limits }), provider)
        } finally {
          await provider.close()
        }
      },
    })),
    ...unheld,
    {
      name: 'the signal that it was opened with closes it, also one aborted while it opens',
      run: async () => {
        const provider = create()
        try {
          const later = new AbortController()
          const sandbox = await provider.open({ signal: later.signal })
          later.abort()
          await refused(() => sandbox.exec('true'), ['STATE'], 'exec after the abort')
          const early = new AbortController()
          const opening = provider.open({ signal: early.signal })
          early.abort(new Error('called off'))
          await assert.rejects(opening.then((opened) => opened.exec('true')))
        } finally {
          await provider.close()
        }
      },
    },
    {
      name: 'an unknown limit names the nearest right one',
      run: async () => {
        const limits = { outputByte: 1 } as SandboxLimits
        const error = await refused(() => create().open({ limits }), ['CONFIG'], 'outputByte')
        assert.match(error.message, /did you mean "outputBytes"/)
      },
    },
  ]
}
