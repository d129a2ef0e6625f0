import { posix } from 'node:path'

import {
  checkOptions,
  ConfigError,
  NotFoundError,
  StateError,
  StoreError,
  UnsupportedError,
  type ExecOptions,
  type ExecResult,
  type Sandbox,
  type SandboxOptions,
  type SandboxProvider,
} from '@tiltyard/core'
import { Bash } from 'just-bash'
import { z } from 'zod'

const HOME = '/home/agent'
/** What just-bash's `execution exceeded its deadline` ends with. */
const DEADLINE_EXIT = 124

const limitsSchema = z.strictObject({
  commandMs: z.number().positive().default(10_000),
  outputBytes: z.int().positive().default(1_000_000),
  diskBytes: z.int().positive().default(67_108_864),
  memoryBytes: z.int().positive().optional(),
  processes: z.int().positive().optional(),
})

/**
 * A simulated shell in this process with files in memory: no process is started, no file of this machine is in reach, there is no
 * network. For tests and toy tasks; its loops and commands are bounded. It shares the event loop with its caller.
 */
export function justBashSandbox(): SandboxProvider {
  const open = new Set<Sandbox>()
  return {
    specVersion: 'sandbox/1',
    name: 'just-bash',
    holds: ['commandMs', 'outputBytes', 'diskBytes'],
    async open(options = {}) {
      options.signal?.throwIfAborted()
      const sandbox = openSandbox(options, () => open.delete(sandbox))
      open.add(sandbox)
      return sandbox
    },
    async close() {
      await Promise.all([...open].map((sandbox) => sandbox.close()))
    },
  }
}

function openSandbox({ env, limits, signal }: SandboxOptions, closed: () => void): Sandbox {
  const held = checkOptions('sandbox limits', limitsSchema, limits ?? {})
  for (const name of ['memoryBytes', 'processes'] as const) {
    if (held[name] === undefined) continue
    throw new UnsupportedError(
      `sandbox just-bash can't hold a limit on ${name}; use a sandbox of real processes for it`,
    )
  }
  const bash = new Bash({
    cwd: HOME,
    env: { HOME, ...env },
    executionLimits: {
      ...uncounted,
      maxExecutionTimeMs: held.commandMs,
      maxFileSystemBytes: held.diskBytes,
    },
  })
  const closing = new AbortController()
  const running = new Set<Promise<unknown>>()
  const use = async <T>(work: Promise<T>): Promise<T> => {
    running.add(work)
    try {
      return await work
    } finally {
      running.delete(work)
    }
  }
  const checkOpen = () => {
    if (closing.signal.aborted) throw new StateError('the sandbox is closed')
  }
  let ended: Promise<void> | undefined
  const close = () => {
    ended ??= (async () => {
      signal?.removeEventListener('abort', abort)
      closing.abort(new StateError('the sandbox was closed'))
      await Promise.allSettled(running)
      closed()
    })()
    return ended
  }
  const abort = () => void close()
  signal?.addEventListener('abort', abort, { once: true })
  return {
    async exec(script, how = {}) {
      checkOpen()
      return use(run(bash, script, how, { ...held, closing: closing.signal }))
    },
    async write(path, data) {
      checkOpen()
      const target = inside(path)
      await bash.fs.mkdir(posix.dirname(target), { recursive: true })
      await bash.fs.writeFile(target, data).catch((error: unknown) => {
        if (!isFull(error)) throw error
        throw new StoreError(
          `could not write ${path} in the sandbox: its disk of ${held.diskBytes} bytes is full`,
        )
      })
    },
    async read(path, maxBytes) {
      checkOpen()
      const source = inside(path)
      if (!(await bash.fs.exists(source)))
        throw new NotFoundError(`there is no file ${path} in the sandbox`)
      return (await bash.fs.readFileBuffer(source)).slice(0, maxBytes)
    },
    close,
  }
}

/**
 * What just-bash counts of a script's own work: time bounds it here, on a fast machine as on a slow one. Its counts inside awk, sed
 * and jq stay, since they don't look at the time.
 */
const uncounted = {
  maxCommandCount: Number.MAX_SAFE_INTEGER,
  maxLoopIterations: Number.MAX_SAFE_INTEGER,
  maxWorkUnits: Number.MAX_SAFE_INTEGER,
}

interface Held {
  readonly commandMs: number
  readonly outputBytes: number
  readonly closing: AbortSignal
}

async function run(bash: Bash, script: string, how: ExecOptions, held: Held): Promise<ExecResult> {
  const started = performance.now()
  const asked = [held.closing, ...(how.signal === undefined ? [] : [how.signal])]
  const deadline = AbortSignal.timeout(Math.min(how.commandMs ?? held.commandMs, held.commandMs))
  const signal = AbortSignal.any([...asked, deadline])
  const options = { rawScript: true, stdin: how.stdin ?? '', signal }
  const { exitCode, stdout, stderr, full } = await bash
    .exec(script, options)
    .then((done) => ({ ...done, full: done.exitCode !== 0 && FULL.test(done.stderr) }), fullDisk)
  const [out, err] = [first(stdout, held.outputBytes), first(stderr, held.outputBytes)]
  const result = {
    exitCode,
    stdout: out.text,
    stderr: err.text,
    droppedBytes: out.dropped + err.dropped,
    ms: performance.now() - started,
  }
  if (full) return { ...result, stopped: 'disk' }
  if (asked.some(({ aborted }) => aborted)) return { ...result, stopped: 'aborted' }
  return exitCode === DEADLINE_EXIT || deadline.aborted ? { ...result, stopped: 'time' } : result
}

/** What ends the script inside a loop, where just-bash does not reject. */
const FULL = /^ENOSPC: in-memory filesystem byte limit exceeded/m

/** just-bash rejects when its memory for files is used up; for a script that is an error like another. */
function fullDisk(error: unknown) {
  if (!isFull(error)) throw error
  return { exitCode: 1, stdout: '', stderr: 'bash: no space left on device\n', full: true }
}

function isFull(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('ENOSPC')
}

/** The first `limit` bytes of a text as UTF-8; a character that the limit splits is left out. */
function first(text: string, limit: number): { readonly text: string; readonly dropped: number } {
  const bytes = Buffer.from(text)
  if (bytes.length <= limit) return { text, dropped: 0 }
  let end = limit
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return { text: bytes.toString('utf8', 0, end), dropped: bytes.length - end }
}

function inside(path: string): string {
  const target = posix.resolve(HOME, path)
  if (path === '' || posix.isAbsolute(path) || !target.startsWith(`${HOME}/`)) {
    throw new ConfigError('sandbox file', [
      { at: path, message: 'expected a path relative to the working directory, inside it' },
    ])
  }
  return target
}
