import type { RunStatus, RunSummary } from '@tiltyard/core'

import type { BlobStore } from './blobs.ts'
import { readClaims, type Claim, type Claims } from './claims.ts'
import { compareWriters, writerName, type Part } from './layout.ts'
import { mayLive } from './liveness.ts'
import { listParts, readMark, type Mark } from './log.ts'

/** Where a run stands, by its claims, the end of its newest log and its signs of life. */
export interface RunState {
  readonly claims: Claims
  /** Of the newest epoch's owner; undefined when it can't be read. */
  readonly owner: Claim | undefined
  readonly status: RunStatus
  /** Whether the owner may still write. */
  readonly alive: boolean
  /** Age of the last sign of life, in milliseconds. */
  readonly signAge: number | undefined
  readonly step: number | undefined
  /** Of the run's log, as it was listed. */
  readonly logParts: readonly Part[]
}

/** Undefined: there is no such run. */
export async function readRunState(
  blobs: BlobStore,
  folder: string,
): Promise<RunState | undefined> {
  const [found, logParts] = await Promise.all([
    readClaims(blobs, folder),
    listParts(blobs, `${folder}/log`),
  ])
  const isLost = found.writers.length === 0
  if (isLost && logParts.length === 0) return undefined
  const claims = isLost ? { ...found, damage: [lostClaims(folder)] } : found
  const newest = claims.writers.at(-1)?.epoch
  const owner = claims.readable.find(({ epoch, number }) => epoch === newest && number === 0)
  if (owner === undefined) {
    const unknown = { signAge: undefined, step: undefined }
    return { claims, owner, status: 'interrupted', alive: false, logParts, ...unknown }
  }
  const own = logParts.filter(({ writer }) => compareWriters(writer, owner) === 0)
  const mark = await readMark(blobs, folder, own)
  const over = mark?.end !== undefined || mark?.closed === true
  const signAge = over ? undefined : await readSignAge(blobs, folder, owner)
  const alive = !over && mayLive(owner, signAge)
  return {
    claims,
    owner,
    status: statusOf(mark, alive),
    alive,
    signAge,
    step: mark?.step ?? owner.step,
    logParts,
  }
}

/** A log without any claim is what is left of a run; nobody should look for it in vain. */
function lostClaims(folder: string): Claims['damage'][number] {
  return {
    where: `${folder}/claims`,
    what: 'no claim is there, and without one nothing can be read',
  }
}

async function readSignAge(
  blobs: BlobStore,
  folder: string,
  owner: Claim,
): Promise<number | undefined> {
  const { blobs: signs } = await blobs.list(`${folder}/alive`)
  return signs.find(({ name }) => name === writerName(owner))?.age
}

function statusOf(mark: Mark | undefined, alive: boolean): RunStatus {
  return mark?.end ?? (alive ? 'running' : 'interrupted')
}

export function summaryOf(name: string, state: RunState, damage: readonly string[]): RunSummary {
  const all = [...state.claims.damage.map(({ where, what }) => `${where}: ${what}`), ...damage]
  const startedAt = state.claims.readable[0]?.record.startedAt
  return {
    name,
    status: state.status,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(state.step === undefined ? {} : { step: state.step }),
    ...(all.length === 0 ? {} : { damage: damageText(all) }),
  }
}

const SHOWN_FAULTS = 3

function damageText(faults: readonly string[]): string {
  const more = faults.length - SHOWN_FAULTS
  return faults.slice(0, SHOWN_FAULTS).join('; ') + (more > 0 ? `; and ${more} more` : '')
}
