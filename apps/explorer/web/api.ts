import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'

import type * as answers from '../src/api/answers.ts'

/** A refusal or failure of the server, in its words. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

type Query = Readonly<Record<string, string | number | undefined>>

function address(path: string, query: Query): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) search.set(name, String(value))
  return `/api/${path}?${search.toString()}`
}

async function request(path: string, query: Query, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(address(path, query), signal === undefined ? {} : { signal }).catch(
    (error: unknown) => {
      if (signal?.aborted === true) throw error
      throw new Problem(0, 'OFFLINE', 'The explorer does not answer. Is it still running?')
    },
  )
  if (response.ok) return response
  const body = (await response.json().catch(() => undefined)) as
    | z.infer<typeof answers.problemAnswer>
    | undefined
  throw new Problem(
    response.status,
    body?.error.code ?? 'INTERNAL',
    body?.error.message ?? `The explorer answered ${response.status}.`,
  )
}

async function ask<Answer extends z.ZodType>(
  path: string,
  query: Query,
  signal?: AbortSignal,
): Promise<z.infer<Answer>> {
  return (await (await request(path, query, signal)).json()) as z.infer<Answer>
}

/** How often a run that goes on is looked at again. */
export const LIVE_MS = 2_000

/** A place of an episode: its run and its id. */
export interface EpisodeAddress {
  readonly run: string
  readonly id: string
}

export interface StepAddress {
  readonly run: string
  readonly split: 'train' | 'eval'
  readonly evaluation?: string | undefined
  readonly step: number
}

export const aboutOptions = () =>
  queryOptions({
    queryKey: ['about'],
    queryFn: ({ signal }) => ask<typeof answers.aboutAnswer>('about', {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const runsOptions = () =>
  queryOptions({
    queryKey: ['runs'],
    queryFn: ({ signal }) => ask<typeof answers.runsAnswer>('runs', {}, signal),
    refetchInterval: LIVE_MS * 2,
  })

export const runOptions = (run: string) =>
  queryOptions({
    queryKey: ['run', run],
    queryFn: ({ signal }) => ask<typeof answers.runAnswer>('run', { run }, signal),
    refetchInterval: ({ state }) => (state.data?.run.status === 'running' ? LIVE_MS : false),
  })

/** `revision` changes when there is something new to see. */
export const metricsOptions = (run: string, names: readonly string[], revision: string | number) =>
  queryOptions({
    queryKey: ['metrics', run, names, revision],
    queryFn: ({ signal }) =>
      ask<typeof answers.metricsAnswer>('metrics', { run, names: names.join(',') }, signal),
    placeholderData: keepPreviousData,
    enabled: names.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
  })

export const numbersOptions = (place: StepAddress) =>
  queryOptions({
    queryKey: ['numbers', place],
    queryFn: ({ signal }) => ask<typeof answers.numbersAnswer>('numbers', { ...place }, signal),
    placeholderData: keepPreviousData,
  })

export const groupsOptions = (place: StepAddress, live: boolean) =>
  queryOptions({
    queryKey: ['groups', place],
    queryFn: ({ signal }) => ask<typeof answers.groupsAnswer>('groups', { ...place }, signal),
    refetchInterval: live ? LIVE_MS : false,
  })

export interface EpisodesQuery {
  readonly run: string
  readonly split?: 'train' | 'eval' | undefined
  readonly evaluation?: string | undefined
  readonly step?: number | undefined
  readonly group?: number | undefined
  readonly task?: string | undefined
  readonly end?: string | undefined
  readonly minReward?: number | undefined
  readonly maxReward?: number | undefined
}

export const askEpisodes = (
  query: EpisodesQuery & { readonly limit?: number; readonly after?: string },
  signal?: AbortSignal,
) => ask<typeof answers.episodesAnswer>('episodes', { ...query }, signal)

/** The attempts of a group: few, so one answer holds them. */
export const siblingsOptions = (query: EpisodesQuery) =>
  queryOptions({
    queryKey: ['siblings', query],
    queryFn: ({ signal }) => askEpisodes(query, signal),
    placeholderData: keepPreviousData,
  })

export const episodeOptions = (at: EpisodeAddress) =>
  queryOptions({
    queryKey: ['episode', at],
    queryFn: ({ signal }) => ask<typeof answers.episodeAnswer>('episode', { ...at }, signal),
  })

/** Messages of one answer: enough for a screen or two. */
export const MESSAGES = 20

export const messagesOptions = (at: EpisodeAddress, page: number, revision: number) =>
  queryOptions({
    queryKey: ['messages', at, page, revision],
    queryFn: ({ signal }) =>
      ask<typeof answers.messagesAnswer>(
        'episode/messages',
        { ...at, from: page * MESSAGES, count: MESSAGES },
        signal,
      ),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  })

export const TEXT_CHARS = 100_000

export const askText = (
  at: EpisodeAddress & { readonly message: number; readonly part: string; readonly from: number },
) => ask<typeof answers.textAnswer>('episode/text', { ...at, chars: TEXT_CHARS })

export const TOKENS = 1_000

export const tokensOptions = (at: EpisodeAddress, sequence: number, from: number, count: number) =>
  queryOptions({
    queryKey: ['tokens', at, sequence, from, count],
    queryFn: ({ signal }) =>
      ask<typeof answers.tokensAnswer>('episode/tokens', { ...at, sequence, from, count }, signal),
    staleTime: 60_000,
  })

export const findOptions = (at: EpisodeAddress, text: string) =>
  queryOptions({
    queryKey: ['find', at, text],
    queryFn: ({ signal }) =>
      ask<typeof answers.findAnswer>('episode/find', { ...at, text }, signal),
    enabled: text !== '',
  })

export const testCaseOptions = (at: EpisodeAddress) =>
  queryOptions({
    queryKey: ['test-case', at],
    queryFn: ({ signal }) =>
      ask<typeof answers.testCaseAnswer>('episode/test-case', { ...at }, signal),
  })

export const rawAddress = (at: EpisodeAddress): string => address('episode/raw', { ...at })

export const rawOptions = (at: EpisodeAddress) =>
  queryOptions({
    queryKey: ['raw', at],
    queryFn: async ({ signal }) => (await request('episode/raw', { ...at }, signal)).text(),
    gcTime: 10_000,
  })
