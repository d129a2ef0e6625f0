import { spawn } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { constants as system } from 'node:os'
import type { Readable } from 'node:stream'

import {
  StoreError,
  UnsupportedError,
  type ExecOptions,
  type ExecResult,
  type SandboxLimits,
} from '@tiltyard/core'

import { bubblewrapArguments, type Place } from './arguments.ts'
import { watchLimits } from './watch.ts'

const USUAL_FOLDERS = ['/usr/bin', '/usr/local/bin', '/bin']

/** @throws UnsupportedError saying how to get it. */
export async function findBubblewrap(program: string | undefined): Promise<string> {
  const candidates =
    program?.startsWith('/') === true
      ? [program]
      : USUAL_FOLDERS.map((folder) => `${folder}/${program ?? 'bwrap'}`)
  for (const candidate of candidates) {
    try {
      await access(candidate, constants.X_OK)
      return candidate
    } catch {
      continue
    }
  }
  throw new UnsupportedError(
    `bubblewrap is not on this machine (looked for ${candidates.join(', ')}); on Debian and Ubuntu: apt-get install bubblewrap`,
  )
}

export interface ContainedRun extends ExecOptions {
  readonly program: string
  readonly place: Place
  /** Id of the user and group that the command runs as, on this machine. Absent: this process' own. */
  readonly user: number | undefined
  readonly readOnly: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly limits: Required<SandboxLimits>
  readonly script: string
  /** Standard input as bytes, instead of `stdin`. */
  readonly input?: Uint8Array
  /** Instead of the limits'. */
  readonly outputBytes?: number
}

export interface ContainedResult extends Omit<ExecResult, 'stdout' | 'stderr'> {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
}

/**
 * Runs one script in a process space of its own. When it resolves the space is gone, and with it all that the script started:
 * the kernel kills every process of a space whose first process ends.
 */
export async function runContained(run: ContainedRun): Promise<ContainedResult> {
  const { limits, signal } = run
  signal?.throwIfAborted()
  const started = performance.now()
  const child = spawn(run.program, bubblewrapArguments(run), {
    env: {},
    ...(run.user === undefined ? {} : { uid: run.user, gid: run.user }),
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  })
  const spawned = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) =>
      reject(new StoreError(`could not start bubblewrap: ${error.message}`, { cause: error })),
    )
  })
  const closed = new Promise<number>((resolve) => {
    child.once('close', (code, name) =>
      resolve(code ?? 128 + (name === null ? 0 : system.signals[name])),
    )
  })
  await spawned
  child.stdin.on('error', () => {}) // The script may end without reading its input.
  child.stdin.end(run.input ?? run.stdin ?? '')
  const outputBytes = run.outputBytes ?? limits.outputBytes
  const [stdout, stderr] = [keep(child.stdout, outputBytes), keep(child.stderr, outputBytes)]
  const { first, ran } = readStatus(child.stdio[3] as Readable)

  let stopped: ExecResult['stopped']
  const stop = (why: NonNullable<ExecResult['stopped']>) => {
    stopped ??= why
    void first.then((pid) => kill(pid))
    child.kill('SIGKILL')
  }
  const abort = () => stop('aborted')
  signal?.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(
    () => stop('time'),
    Math.min(run.commandMs ?? limits.commandMs, limits.commandMs),
  )
  const watching = watchLimits({ first, place: run.place, limits, exceeded: stop })
  try {
    const exitCode = await closed
    kill(await first)
    if (stopped === undefined && !(await ran)) {
      throw new UnsupportedError(
        `bubblewrap could not make a sandbox here: ${new TextDecoder().decode(stderr.bytes()).trim()}`,
      )
    }
    const ms = performance.now() - started
    const droppedBytes = stdout.dropped() + stderr.dropped()
    const result = { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), droppedBytes, ms }
    return stopped === undefined ? result : { ...result, stopped }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    await watching.end()
  }
}

/**
 * What bubblewrap tells of the space: `first` is the id, on this machine, of its first process, undefined when there never was
 * one; `ran` is whether the script came to an end of its own, false when the space could not be made or was killed.
 */
function readStatus(status: Readable) {
  let text = ''
  const ended = new Promise<void>((resolve) => {
    status.once('close', resolve)
    status.once('error', () => resolve())
  })
  const first = new Promise<number | undefined>((resolve) => {
    status.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const match = /"child-pid": (\d+)/.exec(text)
      if (match !== null) resolve(Number(match[1]))
    })
    void ended.then(() => resolve(undefined))
  })
  return { first, ran: ended.then(() => text.includes('"exit-code"')) }
}

function kill(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone already.
  }
}

/** Takes all that comes, so that the writer never waits, and keeps the first `limit` bytes. */
function keep(stream: Readable, limit: number) {
  const parts: Buffer[] = []
  let kept = 0
  let seen = 0
  stream.on('data', (chunk: Buffer) => {
    seen += chunk.length
    const part = chunk.subarray(0, Math.max(0, limit - kept))
    kept += part.length
    if (part.length > 0) parts.push(part)
  })
  return { bytes: () => Buffer.concat(parts), dropped: () => seen - kept }
}
