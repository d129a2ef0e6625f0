import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import process from 'node:process'

import type { Claim } from './claims.ts'

/** This process, without the machine's name: a digest tells only whether two claims come from one machine. */
export function thisProcess(): Claim['process'] {
  return {
    pid: process.pid,
    machine: createHash('sha256').update(hostname()).digest('hex').slice(0, 12),
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
  // In a restarted container we may have the number that the dead writer had.
  if (pid === process.pid) return claimedAt < Date.now() - process.uptime() * 1_000 - 1_000
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
