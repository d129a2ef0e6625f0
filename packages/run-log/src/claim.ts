import { randomUUID } from 'node:crypto'

import {
  RECORD_VERSION,
  StateError,
  StoreError,
  type ClaimOptions,
  type NotFoundError,
  type RunRecord,
} from '@tiltyard/core'

import type { BlobStore } from './blobs.ts'
import type { Claim } from './claims.ts'
import { claimKey } from './layout.ts'
import { thisProcess } from './liveness.ts'
import { readRunState, type RunState } from './run-state.ts'

export interface Claiming {
  readonly blobs: BlobStore
  readonly folder: string
  readonly record: RunRecord
  readonly options: ClaimOptions
  readonly signOfLifeMs: number
  /** The error for a run that doesn't exist. */
  readonly notFound: () => Promise<NotFoundError>
}

/** Each lost race means that somebody else made headway. */
const MAX_ATTEMPTS = 200

/** Takes an epoch, or a place in the present one, by a create-only write: of many racers each gets one of its own or none. */
export async function takeClaim(claiming: Claiming): Promise<Claim> {
  const { blobs, folder, record, options } = claiming
  const resumeAfterStep = options.expect === 'resume' ? options.resumeAfterStep : undefined
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    options.signal?.throwIfAborted()
    const state = await readRunState(blobs, folder)
    const wanted = await nextWriter(claiming, state)
    const step = resumeAfterStep ?? state?.step
    const claim: Claim = {
      version: RECORD_VERSION,
      ...wanted,
      claimedAt: Date.now(),
      process: thisProcess(),
      signOfLifeMs: claiming.signOfLifeMs,
      nonce: randomUUID(),
      ...(resumeAfterStep === undefined ? {} : { resumeAfterStep }),
      ...(step === undefined ? {} : { step }),
      record,
    }
    const content = Buffer.from(`${JSON.stringify(claim)}\n`)
    if (await blobs.create(claimKey(folder, wanted), content, options.signal)) return claim
    // Somebody else was first; look again.
  }
  throw new StoreError(
    `run "${record.name}" could not be claimed in ${MAX_ATTEMPTS} attempts: others were always first, or ${blobs.name} doesn't list what was just written`,
  )
}

async function nextWriter(
  { record, options, notFound }: Claiming,
  state: RunState | undefined,
): Promise<Pick<Claim, 'epoch' | 'number'>> {
  const { expect, takeOver = false } = options
  if (expect === 'new') {
    if (state === undefined) return { epoch: 1, number: 0 }
    throw new StateError(
      `run "${record.name}" exists; resume it, or give the new run another name`,
      { details: { run: record.name } },
    )
  }
  if (state === undefined) throw await notFound()
  const newest = state.claims.writers.at(-1)?.epoch
  if (newest === undefined)
    throw new StateError(
      `run "${record.name}" has lost its claims and can't go on; give it another name`,
      {
        details: { run: record.name },
      },
    )
  if (expect === 'resume') {
    if (state.alive && !takeOver) throw beingWritten(record.name, state)
    return { epoch: newest + 1, number: 0 }
  }
  if (!state.alive) {
    throw new StateError(`run "${record.name}" has no living writer to join; resume it instead`, {
      details: { run: record.name },
    })
  }
  const numbers = state.claims.writers
    .filter(({ epoch }) => epoch === newest)
    .map(({ number }) => number)
  return { epoch: newest, number: Math.max(...numbers) + 1 }
}

function beingWritten(run: string, { owner, signAge }: RunState): StateError {
  const { epoch = 0, claimedAt = 0, process } = owner ?? {}
  const since = new Date(claimedAt).toISOString()
  const sign = signAge === undefined ? 'none yet' : `${Math.round(signAge / 1_000)} s ago`
  return new StateError(
    `run "${run}" is being written by another process: writer ${epoch}, process ${process?.pid ?? '?'}, since ${since}, ` +
      `last sign of life ${sign}. Stop it first, choose another name, or take the run over (takeOver, or --take-over on the command line), which ends its writing`,
    { details: { run, epoch, pid: process?.pid ?? 0, since } },
  )
}
