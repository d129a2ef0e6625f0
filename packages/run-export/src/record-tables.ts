import type {
  EpisodeEvent,
  EpisodeFilter,
  EpisodeRecord,
  RunIndex,
  TrainingEvent,
} from '@tiltyard/core'

import { episodeCells, episodeColumns } from './keys.ts'
import type { Table } from './table.ts'

/** Tables that read the records: what was said, and every token. */

async function* recordsOf(
  index: RunIndex,
  run: string,
  filter: EpisodeFilter,
): AsyncGenerator<EpisodeRecord> {
  if (index.records !== undefined) {
    yield* index.records(run, filter)
    return
  }
  for await (const { key } of index.episodes(run, filter)) yield await index.episode(run, key)
}

export const recordsTable: Table = {
  name: 'records',
  about: 'an episode as it was played: messages, tools, calls, replies',
  rowsAtOnce: 500,
  columns: [
    ...episodeColumns,
    { name: 'task', type: 'STRING', about: 'id of the task', required: true },
    { name: 'seed', type: 'DOUBLE', about: 'seed of the play' },
    { name: 'messages', type: 'JSON', about: 'in order; an unfinished episode’s from its journal' },
    { name: 'tools', type: 'JSON', about: 'what could be called' },
    { name: 'calls', type: 'JSON', about: 'arguments, result, error, milliseconds of each call' },
    {
      name: 'replies',
      type: 'JSON',
      about: 'of each sampled reply: policy version, place in its sequence, sampling settings',
    },
    { name: 'scores', type: 'JSON', about: 'with their notes' },
    { name: 'metrics', type: 'JSON', about: 'numbers about the play' },
    { name: 'damage', type: 'STRING', about: 'what of the record can’t be read' },
  ],
  async *rows(index, run, filter) {
    for await (const record of recordsOf(index, run, filter)) {
      const { summary, episode, journal, score, damage } = record
      yield {
        ...episodeCells(run, summary.key),
        task: summary.task,
        seed: episode?.seed,
        messages: episode?.messages ?? journal.flatMap(({ messages }) => messages),
        tools: episode?.tools,
        calls: episode?.calls ?? journal.flatMap(({ calls }) => calls ?? []),
        replies: episode?.replies,
        scores: score?.scores ?? summary.scores,
        metrics: score?.metrics,
        damage,
      }
    }
  },
}

export const sequencesTable: Table = {
  name: 'sequences',
  about: 'a token sequence of an episode: all that training it again takes',
  rowsAtOnce: 500,
  columns: [
    ...episodeColumns,
    { name: 'sequence', type: 'INT32', about: 'place in the episode', required: true },
    { name: 'ids', type: { list: 'INT32' }, about: 'token ids; −1 for a position of an image' },
    {
      name: 'logprobs',
      type: { list: 'FLOAT' },
      about: 'log-probability of each sampled id, in nats; 0 elsewhere',
    },
    {
      name: 'mask',
      type: { list: 'INT32' },
      about: '1 where the id was sampled and may be trained',
    },
    {
      name: 'advantages',
      type: { list: 'FLOAT' },
      about: 'of each id in the update; 0 where it wasn’t trained; null: not in an update',
    },
    { name: 'trained_at', type: 'INT32', about: 'step whose update it was in' },
  ],
  async *rows(index, run, filter) {
    for await (const { summary, episode, training } of recordsOf(index, run, filter)) {
      for (const [place, sequence] of (episode?.sequences ?? []).entries()) {
        const advantages = advantagesOf(sequence, place, training)
        yield {
          ...episodeCells(run, summary.key),
          sequence: place,
          ids: sequence.ids,
          logprobs: sequence.logprobs,
          mask: sequence.mask,
          advantages,
          trained_at: advantages === undefined ? undefined : training?.step,
        }
      }
    }
  },
}

/** One per id: as recorded where they differ, else the episode's for every id that may be trained. */
function advantagesOf(
  { mask }: EpisodeEvent['sequences'][number],
  place: number,
  training: TrainingEvent | undefined,
): Float32Array | undefined {
  const datum = training?.data.find(({ sequence }) => sequence === place)
  if (datum === undefined || training?.untrained !== undefined) return undefined
  const { advantage = 0 } = training ?? {}
  return datum.advantages ?? Float32Array.from(mask, (mark) => (mark === 0 ? 0 : advantage))
}
