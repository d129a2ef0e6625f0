import { readdir, readFile, readlink, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import type { SandboxLimits } from '@tiltyard/core'

import type { Place } from './arguments.ts'

/** Between two looks. A command may overshoot by what it does in that time. */
const LOOK_MS = 50
const DISK_BLOCK_BYTES = 512
/** What a file takes beside its content, so that empty ones are bounded too. */
const FILE_BYTES = 256
/** How far over its limit a disk may be for commands still to run that may make room. */
const OVERSHOOT_BYTES = 268_435_456

export interface Watched {
  readonly first: Promise<number | undefined>
  readonly place: Place
  readonly limits: Required<SandboxLimits>
  readonly exceeded: (what: 'memory' | 'processes' | 'disk') => void
}

/**
 * Looks at what the processes of a space use together; the kernel's own limits are per process. A look that comes late because
 * this machine is busy sees more, not less.
 */
export function watchLimits({ first, place, limits, exceeded }: Watched) {
  const over = new AbortController()
  const looking = (async () => {
    const pid = await first
    if (pid === undefined) return
    const pause = () => sleep(LOOK_MS, undefined, { signal: over.signal }).catch(() => {})
    let space = await spaceOf(pid)
    while (space === undefined && !over.signal.aborted) {
      await pause()
      space = await spaceOf(pid)
    }
    if (space === undefined) return
    const mostDisk = limits.diskBytes + OVERSHOOT_BYTES
    let allowedDisk: number | undefined
    while (!over.signal.aborted) {
      const [use, disk] = await Promise.all([
        usage(space),
        diskBytes([place.home, place.temporary], mostDisk),
      ])
      if (use.bytes > limits.memoryBytes) exceeded('memory')
      if (use.processes > limits.processes + OWN_PROCESSES) exceeded('processes')
      // What a former command left over the limit may be removed, and not added to.
      allowedDisk ??= Math.min(Math.max(disk, limits.diskBytes), mostDisk)
      if (disk > allowedDisk) exceeded('disk')
      await pause()
    }
  })()
  return {
    async end() {
      over.abort()
      await looking
    },
  }
}

/** The space's first process, which isn't the script's. */
const OWN_PROCESSES = 1

async function spaceOf(pid: number | string): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/pid`).catch(() => undefined)
}

async function usage(
  space: string,
): Promise<{ readonly bytes: number; readonly processes: number }> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const sizes = await Promise.all(
    pids.map(async (pid) => ((await spaceOf(pid)) === space ? residentBytes(pid) : undefined)),
  )
  const inside = sizes.filter((size) => size !== undefined)
  return { bytes: inside.reduce((sum, size) => sum + size, 0), processes: inside.length }
}

/**
 * What is in memory for the process and for no file; of what it shares with others, its part. Where the kernel keeps the parts back,
 * as of a process that asked for it, all of what is shared.
 */
async function residentBytes(pid: string): Promise<number> {
  const parts = await kilobytes(`/proc/${pid}/smaps_rollup`, /^Pss_(?:Anon|Shmem):\s+(\d+) kB$/gm)
  const whole = () => kilobytes(`/proc/${pid}/status`, /^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm)
  return (parts ?? (await whole()) ?? 0) * 1024
}

/** The sum of the sizes that a pattern finds in a file; undefined where it finds none. */
async function kilobytes(file: string, pattern: RegExp): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const sizes = Array.from(text.matchAll(pattern), ([, size]) => Number(size))
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0)
}

/** What the folders take on disk, links not followed; stops counting once it is too much. */
async function diskBytes(folders: readonly string[], enough: number): Promise<number> {
  let bytes = 0
  const pending = [...folders]
  while (pending.length > 0 && bytes <= enough) {
    const folder = pending.pop()!
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) pending.push(path)
      const info = await lstat(path).catch(() => undefined)
      bytes += (info?.blocks ?? 0) * DISK_BLOCK_BYTES + FILE_BYTES
    }
  }
  return bytes
}
