import {
  checkContract,
  silentLogger,
  TiltyardError,
  type EpisodeRecord,
  type Logger,
  type RunDetails,
  type RunIndex,
  type Tokenizer,
} from '@tiltyard/core'
import { Hono, type Context } from 'hono'
import type { z } from 'zod'

import * as queries from '../api/queries.ts'
import { showEpisode } from './episode.ts'
import { episodeKeyOf, listEpisodes, listGroups } from './episodes.ts'
import { guard } from './guard.ts'
import { findText, listMessages, readText } from './messages.ts'
import { BadRequest, problem, problemOf } from './problems.ts'
import { rawRecord } from './raw.ts'
import { createRecent } from './recent.ts'
import { listRuns, numbersOf, seriesOf, showRun } from './runs.ts'
import { testCaseOf } from './test-case.ts'
import { listTokens } from './tokens.ts'
import type { WebFile } from './web-files.ts'

/** What an explorer shows. */
export interface ExplorerAppOptions {
  /** Stays the caller's to close. */
  readonly index: RunIndex
  /** Vocabularies to show tokens with; for each episode the one that fits is found. Default: none, tokens are ids. */
  readonly tokenizers?: readonly Tokenizer[]
  /** Told of failures that are no answer to a question. Default: silent. */
  readonly logger?: Logger
  /** Milliseconds, from any beginning. Default `performance.now`. */
  readonly now?: () => number
}

/** How long what was read of a run or an episode is used again: shorter than a reader would notice. */
const FRESH_MS = 1_000
/** An episode may take tens of megabytes. */
const EPISODES_KEPT = 4
const RUNS_KEPT = 16

/** The explorer as a function of requests: the API below `/api`, and the page for every other address. */
export function explorerApp(
  {
    index,
    tokenizers = [],
    logger = silentLogger,
    now = () => performance.now(),
  }: ExplorerAppOptions,
  files: ReadonlyMap<string, WebFile>,
): Hono {
  checkContract('index', 'run-index/1', index)
  const runs = createRecent<RunDetails>({ most: RUNS_KEPT, forMs: FRESH_MS, now })
  const episodes = createRecent<EpisodeRecord>({ most: EPISODES_KEPT, forMs: FRESH_MS, now })
  const runOf = (run: string) => runs.get(run, () => index.run(run))
  const episodeOf = ({ run, id }: { readonly run: string; readonly id: string }) =>
    episodes.get(JSON.stringify([run, id]), () => index.episode(run, episodeKeyOf(id)))

  const app = new Hono()
  app.use(guard)
  const api = new Hono()
  api.use(async (context, next) => {
    await next()
    context.res.headers.set('cache-control', 'no-store')
  })
  const get = <Query extends z.ZodType>(
    path: string,
    schema: Query,
    answer: (query: z.output<Query>) => unknown,
  ) => api.get(path, async (context) => context.json(await answer(readQuery(context, schema))))

  get('/about', queries.aboutQuery, () => ({ index: index.name }))
  get('/runs', queries.runsQuery, async () => ({ runs: await listRuns(index) }))
  get('/run', queries.runQuery, async ({ run }) => showRun(await runOf(run)))
  get('/metrics', queries.metricsQuery, async ({ run, names }) => ({
    series: seriesOf(await runOf(run), names),
  }))
  get('/numbers', queries.numbersQuery, async ({ run, ...at }) =>
    numbersOf(await runOf(run), present(at)),
  )
  get('/groups', queries.groupsQuery, async ({ run, ...place }) => ({
    groups: await listGroups(index, run, present(place)),
  }))
  get('/episodes', queries.episodesQuery, ({ run, limit, after, ...filter }) =>
    listEpisodes(index, run, present(filter), { limit, after }),
  )
  get('/episode', queries.episodeQuery, async (of) => showEpisode(await episodeOf(of), tokenizers))
  get('/episode/messages', queries.messagesQuery, async ({ from, count, ...of }) => ({
    messages: listMessages(await episodeOf(of), { from, count }),
  }))
  get('/episode/text', queries.textQuery, async ({ run, id, ...wanted }) =>
    readText(await episodeOf({ run, id }), wanted),
  )
  get('/episode/find', queries.findQuery, async ({ text, ...of }) =>
    findText(await episodeOf(of), text, queries.limits.hits),
  )
  get('/episode/tokens', queries.tokensQuery, async ({ run, id, ...wanted }) =>
    listTokens(await episodeOf({ run, id }), wanted, tokenizers),
  )
  get('/episode/test-case', queries.episodeQuery, async (of) => testCaseOf(await episodeOf(of)))
  api.get('/episode/raw', async (context) => {
    const text = rawRecord(await episodeOf(readQuery(context, queries.episodeQuery)))
    return context.body(text, 200, { 'content-type': 'application/json; charset=utf-8' })
  })
  api.all('*', ({ req }) => problem(404, 'NOT_FOUND', `the explorer has no ${req.path}`))

  app.route('/api', api)
  app.get('*', ({ req }) => pageOf(files, req.path))
  app.onError((error, { req }) => {
    if (!TiltyardError.is(error))
      logger.warn('an answer failed', { path: req.path, error: error.stack ?? error.message })
    return problemOf(error)
  })
  return app
}

/** @throws BadRequest naming each parameter and what it should be. */
function readQuery<Query extends z.ZodType>({ req }: Context, schema: Query): z.output<Query> {
  const given = Object.entries(req.queries()).map(([name, values]) => [
    name,
    values.length === 1 ? values[0] : values,
  ])
  const result = schema.safeParse(Object.fromEntries(given))
  if (result.success) return result.data
  const mistakes = result.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`,
  )
  throw new BadRequest(mistakes.join('; '))
}

type Present<T> = { [Key in keyof T]: Exclude<T[Key], undefined> }

/** Without the members that are undefined. */
function present<T extends object>(value: T): Present<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== undefined),
  ) as Present<T>
}

/** Files have their content in their name; every address of the page itself is the one document. */
function pageOf(files: ReadonlyMap<string, WebFile>, path: string): Response {
  const file = files.get(path)
  if (file === undefined && path.startsWith('/assets/'))
    return problem(404, 'NOT_FOUND', `the explorer has no ${path}`)
  const { body, type } = file ?? files.get('/index.html')!
  const isNamedByContent = path.startsWith('/assets/')
  return new Response(body, {
    headers: {
      'content-type': type,
      'cache-control': isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache',
    },
  })
}
