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
  const first = firstProcess(child.stdio[3] as Readable)

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
    const pid = await first
    kill(pid)
    if (pid === undefined && stopped === undefined) {
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

/** The id, on this machine, of the first process in the script's space; undefined when there never was one. */
async function firstProcess(info: Readable): Promise<number | undefined> {
  let text = ''
  try {
    for await (const chunk of info) text += String(chunk)
  } catch {
    return undefined
  }
  const match = /"child-pid": (\d+)/.exec(text)
  return match === null ? undefined : Number(match[1])
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
