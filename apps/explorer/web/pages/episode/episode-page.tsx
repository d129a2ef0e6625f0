import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'

import type { EpisodeAnswer, EpisodeLine } from '../../../src/api/answers.ts'
import { episodeOptions, LIVE_MS, runOptions, siblingsOptions } from '../../api.ts'
import { formatMs, formatNumber, formatSigned, formatTime } from '../../format.ts'
import { given } from '../../search.ts'
import { EndBadge, rewardOf, rewardText, trainedText } from '../../ui/badges.tsx'
import { type Fact, FactList } from '../../ui/facts.tsx'
import { useKeys } from '../../ui/keys.ts'
import { Answer } from '../../ui/state.tsx'
import { Text } from '../../ui/text.tsx'
import { rewardRange, Tiles } from '../../ui/tiles.tsx'
import { Conversation } from './conversation.tsx'
import { RawView } from './raw-view.tsx'
import { SidePanels } from './side-panels.tsx'
import { TestCase } from './test-case.tsx'
import { Timeline } from './timeline.tsx'
import { TokensView } from './tokens-view.tsx'

const route = getRouteApi('/runs/$run/episode/$')

const views = ['conversation', 'timeline', 'tokens', 'raw'] as const

export function EpisodePage() {
  const { run, _splat: id = '' } = route.useParams()
  const details = useQuery(runOptions(run))
  const query = useQuery({
    ...episodeOptions({ run, id }),
    // One under way grows; one that has ended may still be scored and trained.
    refetchInterval: ({ state }) =>
      details.data?.run.status === 'running' && state.data?.training === undefined
        ? LIVE_MS
        : false,
  })
  return (
    <Answer query={query} what="the episode">
      {(answer) => (
        <Episode
          key={id}
          run={run}
          answer={answer}
          isLive={details.data?.run.status === 'running'}
        />
      )}
    </Answer>
  )
}

function Episode({
  run,
  answer,
  isLive,
}: {
  readonly run: string
  readonly answer: EpisodeAnswer
  readonly isLive: boolean
}) {
  const { view = 'conversation' } = route.useSearch()
  const { episode, damage, ended } = answer
  const at = { run, id: episode.id }
  return (
    <div className="stack">
      <div className="head">
        <h1>
          <Link to="/runs/$run/task" params={{ run }} search={{ task: episode.task }}>
            <Text text={episode.task} />
          </Link>
        </h1>
        {ended || !isLive ? (
          <EndBadge episode={episode} />
        ) : (
          <span className="badge live">under way</span>
        )}
        <div className="push">
          <TestCase at={at} />
        </div>
      </div>
      <Siblings run={run} episode={episode} />
      <Facts answer={answer} />
      {damage === undefined ? null : (
        <p className="panel bad">
          Not all of it can be read: <Text text={damage} />
        </p>
      )}
      {ended || isLive ? null : (
        <p className="panel">Its writer stopped before it ended; this is what the journal holds.</p>
      )}
      <nav className="tabs" aria-label="Views of this episode">
        {views.map((name) => (
          <Link
            key={name}
            from="/runs/$run/episode/$"
            to="."
            search={(search) => {
              return given({ ...search, view: name === 'conversation' ? undefined : name })
            }}
            activeOptions={{ exact: true, includeSearch: true }}
          >
            {
              {
                conversation: 'Conversation',
                timeline: 'Timeline',
                tokens: 'Tokens',
                raw: 'Raw record',
              }[name]
            }
          </Link>
        ))}
      </nav>
      {view === 'raw' ? (
        <RawView at={at} />
      ) : view === 'tokens' ? (
        <TokensView at={at} answer={answer} />
      ) : (
        <div className="with-side">
          {view === 'timeline' ? (
            <Timeline answer={answer} />
          ) : (
            <Conversation at={at} answer={answer} />
          )}
          <SidePanels answer={answer} />
        </div>
      )}
    </div>
  )
}

/** The episodes of the group, with their rewards side by side. */
function Siblings({ run, episode }: { readonly run: string; readonly episode: EpisodeLine }) {
  const { split, evaluation, step, group, id } = episode
  const navigate = route.useNavigate()
  const { data } = useQuery(siblingsOptions({ run, split, evaluation, step, group }))
  const siblings = (data?.episodes ?? []).filter((each) => each.evaluation === evaluation)
  const place = siblings.findIndex((each) => each.id === id)
  const go = (to: EpisodeLine | undefined) => {
    if (to !== undefined && place !== -1)
      void navigate({
        params: (params) => ({ ...params, _splat: to.id }),
        search: (kept) => given({ ...kept, message: undefined }),
      })
  }
  useKeys({ '[': () => go(siblings[place - 1]), ']': () => go(siblings[place + 1]) })
  if (siblings.length < 2) return null
  return (
    <nav aria-label="Episodes of this group">
      <Tiles run={run} episodes={siblings} range={rewardRange(siblings)} current={id} />
    </nav>
  )
}

function Facts({ answer: { episode, seed, tags } }: { readonly answer: EpisodeAnswer }) {
  const facts: readonly Fact[] = [
    ['reward', rewardText(episode) ?? formatNumber(rewardOf(episode))],
    ['advantage', episode.advantage === undefined ? undefined : formatSigned(episode.advantage)],
    ['training', trainedText(episode)],
    ['replies', formatNumber(episode.replies)],
    ['calls', formatNumber(episode.calls)],
    [
      'tokens',
      `${formatNumber(episode.promptTokens)} shown, ${formatNumber(episode.sampledTokens)} sampled`,
    ],
    ['took', formatMs(episode.ms)],
    ['began', formatTime(episode.startedAt)],
    ['seed', seed === undefined ? undefined : String(seed)],
    ['tags', tags.length === 0 ? undefined : tags.join(', ')],
  ]
  return <FactList facts={facts} />
}
