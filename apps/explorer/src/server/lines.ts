import {
  endName,
  episodeId,
  type EpisodeSummary,
  type MetricsEvent,
  type RunSummary,
} from '@tiltyard/core'

import type { EpisodeLine, RunLine, SeriesPlace } from '../api/answers.ts'

export function runLineOf({ name, status, startedAt, step, damage }: RunSummary): RunLine {
  return {
    name,
    status,
    steps: step === undefined ? 0 : step + 1,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(damage === undefined ? {} : { damage }),
  }
}

export function episodeLineOf({ key, end, ...summary }: EpisodeSummary): EpisodeLine {
  const { task, scores, replies, calls, promptTokens, sampledTokens, startedAt, ms } = summary
  const { reward, advantage, trained } = summary
  return {
    id: episodeId(key),
    ...key,
    task,
    end: end === undefined ? 'unfinished' : endName(end),
    ...(end === undefined ? {} : { reason: end }),
    scores,
    ...(reward === undefined ? {} : { reward }),
    ...(advantage === undefined ? {} : { advantage }),
    ...(trained === undefined ? {} : { trained }),
    replies,
    calls,
    promptTokens,
    sampledTokens,
    startedAt,
    ms,
  }
}

export function placeOf({ split, evaluation }: SeriesPlace | MetricsEvent): SeriesPlace {
  return { split, ...(evaluation === undefined ? {} : { evaluation }) }
}

export function placeName({ split, evaluation }: SeriesPlace | MetricsEvent): string {
  return evaluation === undefined ? split : `${split}/${evaluation}`
}
