import { RECORD_VERSION, runRecordSchema, summarizeError } from '@tiltyard/core'
import { z } from 'zod'

import type { BlobStore } from './blobs.ts'
import { compareWriters, parseWriter, type WriterId } from './layout.ts'

/** What a writer leaves when it takes an epoch, or joins one. Never changed. */
export const claimSchema = z.object({
  version: z.literal(RECORD_VERSION),
  epoch: z.int(),
  number: z.int(),
  /** Milliseconds since 1970. */
  claimedAt: z.number(),
  process: z.object({ pid: z.int(), machine: z.string() }),
  /** How often the writer promises a sign of life, in milliseconds. */
  signOfLifeMs: z.number(),
  /** Random, so that no two claims are equal. */
  nonce: z.string(),
  resumeAfterStep: z.int().optional(),
  /** Last completed step when the claim was made. */
  step: z.int().optional(),
  record: runRecordSchema,
})
export type Claim = z.infer<typeof claimSchema>

export interface Claims {
  /** In order of epoch and number. */
  readonly readable: readonly Claim[]
  /** Every writer there has been, those with an unreadable claim too. */
  readonly writers: readonly WriterId[]
  /** What can't be read. */
  readonly damage: readonly { readonly where: string; readonly what: string }[]
}

export async function readClaims(blobs: BlobStore, folder: string): Promise<Claims> {
  const { blobs: infos } = await blobs.list(`${folder}/claims`)
  const found = infos
    .map(({ name }) => ({ name, writer: parseWriter(name.replace(/\.json$/, '')) }))
    .filter((entry): entry is { name: string; writer: WriterId } => entry.writer !== undefined)
    .toSorted((a, b) => compareWriters(a.writer, b.writer))
  const damage: { where: string; what: string }[] = []
  const claims = await Promise.all(
    found.map(async ({ name }) => {
      const key = `${folder}/claims/${name}`
      try {
        const content = await blobs.read(key)
        if (content === undefined) throw new Error('it is gone')
        return claimSchema.parse(JSON.parse(Buffer.from(content).toString('utf8')))
      } catch (error) {
        damage.push({ where: key, what: `unreadable claim: ${describeFault(error)}` })
        return undefined
      }
    }),
  )
  return {
    readable: claims.filter((claim) => claim !== undefined),
    writers: found.map(({ writer }) => writer),
    damage,
  }
}

/** One line about why something can't be read. */
export function describeFault(error: unknown): string {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues
    return issue === undefined ? 'invalid' : `${issue.path.join('.')}: ${issue.message}`
  }
  return summarizeError(error).message
}

/** Whether an event of a writer's epoch about a step is still seen: a later resume drops what came after its step. */
export function visibility(claims: readonly Claim[]): (epoch: number, step: number) => boolean {
  const resumes = claims.filter(({ resumeAfterStep }) => resumeAfterStep !== undefined)
  return (epoch, step) =>
    resumes.every(
      (claim) => claim.epoch <= epoch || step <= (claim.resumeAfterStep ?? Number.MAX_SAFE_INTEGER),
    )
}
