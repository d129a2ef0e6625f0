import {
  endName,
  isRewarded,
  type EpisodeSummary,
  type GroupSummary,
  type MetricsEvent,
} from '@tiltyard/core'

import { episodeCells, episodeColumns, groupCells, groupColumns, placeColumns } from './keys.ts'
import type { Row, Table } from './table.ts'

/** Tables that need no records: they are made from summaries and from the run's log. */

const SMALL_ROWS_AT_ONCE = 20_000

export const episodesTable: Table = {
  name: 'episodes',
  about: 'an episode, every attempt: how it ended, what it scored, whether it trained',
  rowsAtOnce: SMALL_ROWS_AT_ONCE,
  columns: [
    ...episodeColumns,
    { name: 'task', type: 'STRING', about: 'id of the task', required: true },
    {
      name: 'fingerprint',
      type: 'STRING',
      about: 'hash of the task with all that it is played with',
      required: true,
    },
    {
      name: 'end',
      type: 'STRING',
      about:
        '`completed`, the name of the limit that cut it, `failed`, `cancelled`, or `unfinished`',
      required: true,
    },
    { name: 'failure', type: 'STRING', about: 'where and why it failed' },
    { name: 'reward', type: 'DOUBLE', about: 'the number that trains' },
    { name: 'unscored', type: 'STRING', about: 'why there is no reward' },
    { name: 'advantage', type: 'DOUBLE', about: 'against its group' },
    { name: 'trained', type: 'BOOLEAN', about: 'whether it was in an update; null: undecided' },
    { name: 'untrained', type: 'STRING', about: 'why it was in none' },
    { name: 'scores', type: 'JSON', about: 'scores by step, `{"value"}` or `{"unscored"}`' },
    { name: 'replies', type: 'INT32', about: 'sampled replies', required: true },
    { name: 'calls', type: 'INT32', about: 'tool calls', required: true },
    { name: 'prompt_tokens', type: 'INT32', about: 'positions not sampled', required: true },
    { name: 'sampled_tokens', type: 'INT32', about: 'positions sampled', required: true },
    { name: 'started_at', type: 'TIMESTAMP', about: 'UTC, milliseconds', required: true },
    { name: 'ms', type: 'DOUBLE', about: 'wall time in milliseconds', required: true },
  ],
  async *rows(index, run, filter) {
    for await (const episode of index.episodes(run, filter)) yield episodeRow(run, episode)
  },
}

function episodeRow(run: string, episode: EpisodeSummary): Row {
  const { key, end, reward, trained } = episode
  return {
    ...episodeCells(run, key),
    task: episode.task,
    fingerprint: episode.fingerprint,
    end: end === undefined ? 'unfinished' : endName(end),
    failure: end?.kind === 'failed' ? `${end.phase}: ${end.error.message}` : undefined,
    reward: reward !== undefined && isRewarded(reward) ? reward.reward : undefined,
    unscored: reward !== undefined && !isRewarded(reward) ? reward.unscored : undefined,
    advantage: episode.advantage,
    trained: trained === undefined ? undefined : trained === true,
    untrained: typeof trained === 'string' ? trained : undefined,
    scores: episode.scores,
    replies: episode.replies,
    calls: episode.calls,
    prompt_tokens: episode.promptTokens,
    sampled_tokens: episode.sampledTokens,
    started_at: new Date(episode.startedAt),
    ms: episode.ms,
  }
}

export const groupsTable: Table = {
  name: 'groups',
  about: 'a group of episodes whose rewards are compared',
  rowsAtOnce: SMALL_ROWS_AT_ONCE,
  columns: [
    ...groupColumns,
    { name: 'task', type: 'STRING', about: 'id of the task', required: true },
    { name: 'members', type: 'INT32', about: 'episodes, retries apart', required: true },
    { name: 'reward', type: 'DOUBLE', about: 'mean over the rewarded members' },
    { name: 'dropped', type: 'STRING', about: 'why it did not train' },
  ],
  async *rows(index, run, { split, evaluation, step, group, task }) {
    const filter = {
      ...(split === undefined ? {} : { split }),
      ...(evaluation === undefined ? {} : { evaluation }),
      ...(step === undefined ? {} : { step }),
    }
    for await (const summary of index.groups(run, filter)) {
      const isOther =
        (group !== undefined && summary.key.group !== group) ||
        (task !== undefined && summary.task !== task)
      if (!isOther) yield groupRow(run, summary)
    }
  },
}

function groupRow(run: string, { key, task, members, reward, dropped }: GroupSummary): Row {
  return { ...groupCells(run, key), task, members, reward, dropped }
}

export const metricsTable: Table = {
  name: 'metrics',
  about: 'one number of one step',
  rowsAtOnce: SMALL_ROWS_AT_ONCE,
  columns: [
    ...placeColumns,
    { name: 'name', type: 'STRING', about: 'name of the metric', required: true },
    { name: 'value', type: 'DOUBLE', about: 'null where the run had no such number' },
    {
      name: 'timing',
      type: 'BOOLEAN',
      about: 'true for times, rates and lag, which differ between equal runs',
      required: true,
    },
  ],
  async *rows(index, run, { split, evaluation, step }) {
    for (const event of (await index.run(run)).metrics) {
      const isOther =
        (split !== undefined && event.split !== split) ||
        (evaluation !== undefined && event.evaluation !== evaluation) ||
        (step !== undefined && event.step !== step)
      if (!isOther) yield* metricRows(run, event)
    }
  },
}

function* metricRows(run: string, event: MetricsEvent): Generator<Row> {
  const { split, evaluation, step } = event
  for (const [numbers, timing] of [
    [event.values, false],
    [event.timing, true],
  ] as const) {
    for (const [name, value] of Object.entries(numbers))
      yield { run, split, evaluation, step, name, value: value ?? undefined, timing }
  }
}
