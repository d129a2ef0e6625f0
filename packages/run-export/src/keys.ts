import { episodeId, type EpisodeKey, type GroupKey } from '@tiltyard/core'

import type { Column, Row } from './table.ts'

/** Columns that say which run, step, group and episode a row is about. */

const runColumn: Column = {
  name: 'run',
  type: 'STRING',
  about: 'name of the run',
  required: true,
}

export const placeColumns: readonly Column[] = [
  runColumn,
  { name: 'split', type: 'STRING', about: '`train` or `eval`', required: true },
  { name: 'evaluation', type: 'STRING', about: 'which evaluation, where a run has several' },
  { name: 'step', type: 'INT32', about: 'step of the trainer when it was played', required: true },
]

export const groupColumns: readonly Column[] = [
  ...placeColumns,
  { name: 'group', type: 'INT32', about: 'place in the batch of the step', required: true },
]

export const episodeColumns: readonly Column[] = [
  { name: 'id', type: 'STRING', about: 'id of the episode in its run', required: true },
  ...groupColumns,
  { name: 'member', type: 'INT32', about: 'place in the group', required: true },
  { name: 'attempt', type: 'INT32', about: '0 for the first try', required: true },
]

export function groupCells(run: string, { split, evaluation, step, group }: GroupKey): Row {
  return { run, split, evaluation, step, group }
}

export function episodeCells(run: string, key: EpisodeKey): Row {
  const { member, attempt } = key
  return { id: episodeId(key), ...groupCells(run, key), member, attempt }
}
