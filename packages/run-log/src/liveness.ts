import { createHash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import process from 'node:process'

import type { Claim } from './claims.ts'

/**
 * This process, without the machine's name: a digest tells only whether the process ids of two claims mean the same. Containers
 * of one machine may share its name but not its process ids.
 */
export function thisProcess(): Claim['process'] {
  const place = `${hostname()} ${processNamespace()}`
  return {
    pid: process.pid,
    machine: createHash('sha256').update(place).digest('hex').slice(0, 12),
  }
}

function processNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

/** A writer may miss this many signs of life. */
const MISSED_SIGNS = 6

/**
 * Whether the process of a claim may still write. No, when it ran on this machine and is gone, or when its signs of life ceased.
 * `signAge` is the age of the last one in milliseconds; undefined when there is none.
 */
export function mayLive(claim: Claim, signAge: number | undefined): boolean {
  const here = thisProcess()
  if (claim.process.machine === here.machine && isGone(claim)) return false
  const age = signAge ?? Date.now() - claim.claimedAt
  return age < MISSED_SIGNS * claim.signOfLifeMs
}

function isGone({ process: { pid }, claimedAt }: Claim): boolean {
  // Numbers are used again.
  if (pid === process.pid) return claimedAt < Date.now() - process.uptime() * 1_000 - 1_000
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
