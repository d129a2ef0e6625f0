import type { ChildProcess } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'

import type { Clock } from '@tiltyard/core'

/** An environment variable by which a process's descendants are found again, wherever they moved. */
export interface ProcessMark {
  readonly variable: string
  readonly value: string
}

/**
 * Ends a process that was started as the head of its own group, with all that it started: first asks, then after a grace period
 * kills. On Linux also those that left the group are found, by the mark in their environment.
 */
export async function endTree(
  child: ChildProcess,
  mark: ProcessMark,
  clock: Clock,
  graceMs: number,
): Promise<void> {
  if (child.pid === undefined) return
  const { pid } = child
  const exited = new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once('exit', () => resolve())
  })
  signalGroup(pid, 'SIGTERM')
  const done = new AbortController()
  await Promise.race([exited, clock.sleep(graceMs, done.signal).catch(() => {})])
  done.abort()
  signalGroup(pid, 'SIGKILL')
  for (const stray of await marked(mark)) signal(stray, 'SIGKILL')
  await exited
}

function signalGroup(pid: number, name: NodeJS.Signals): void {
  signal(-pid, name)
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It is gone already.
  }
}

/** Processes with the mark in the environment that they were started with; none where there is no /proc. */
async function marked({ variable, value }: ProcessMark): Promise<readonly number[]> {
  const entries = await readdir('/proc').catch(() => [])
  const wanted = `${variable}=${value}`
  const found = await Promise.all(
    entries
      .filter((entry) => /^\d+$/.test(entry))
      .map(async (entry) => {
        const environment = await readFile(`/proc/${entry}/environ`, 'latin1').catch(() => '')
        return environment.split('\u0000').includes(wanted) ? [Number(entry)] : []
      }),
  )
  return found.flat().filter((pid) => pid !== process.pid)
}
