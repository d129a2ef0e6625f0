import { StateError, type Damage, type RunUpkeep } from '@tiltyard/core'

import { forEach } from '../ahead.ts'
import type { BlobStore } from '../blobs.ts'
import type { Claim } from '../claims.ts'
import { writerName } from '../layout.ts'
import { listPlaces } from '../places.ts'
import { readRunState } from '../run-state.ts'
import { damageOf } from './damage.ts'
import { allBelow, sumOf, wasteOf, type Waste } from './waste.ts'

export interface UpkeepOptions {
  readonly blobs: BlobStore
  readonly folderOf: (run: string) => string
  /** @throws NotFoundError */
  readonly claimsOf: (run: string) => Promise<readonly Claim[]>
}

const REMOVED_AT_ONCE = 16

export function createUpkeep({ blobs, folderOf, claimsOf }: UpkeepOptions): RunUpkeep {
  const stateOf = async (run: string) => {
    const claims = await claimsOf(run)
    const folder = folderOf(run)
    const state = await readRunState(blobs, folder)
    const living = state?.alive === true ? state.owner : undefined
    return { blobs, folder, claims, living, damage: state?.claims.damage ?? [] }
  }
  const removeAll = async (waste: readonly Waste[]) => {
    await forEach(waste, REMOVED_AT_ONCE, ({ key }) => blobs.remove(key))
  }
  return {
    async *check(run) {
      const { damage, ...reading } = await stateOf(run)
      yield* damage satisfies readonly Damage[]
      yield* damageOf(reading)
    },
    async collect(run, { dryRun = false } = {}) {
      const { folder, ...reading } = await stateOf(run)
      const places = await listPlaces(blobs, folder)
      const waste = await wasteOf({ folder, ...reading, places })
      if (!dryRun) await removeAll(waste)
      return sumOf(waste)
    },
    async remove(run) {
      const { folder, living } = await stateOf(run)
      if (living !== undefined) {
        throw new StateError(
          `run "${run}" is being written (writer ${writerName(living)}); stop it before removing it`,
        )
      }
      const all = await allBelow(blobs, folder)
      const isClaim = ({ key }: Waste) => key.startsWith(`${folder}/claims/`)
      // The claims last: until they are gone the run is listed and its name is taken.
      await removeAll(all.filter((waste) => !isClaim(waste)))
      await removeAll(all.filter(isClaim))
      return sumOf(all)
    },
  }
}
