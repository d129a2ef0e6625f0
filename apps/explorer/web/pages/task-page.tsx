import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'

import type { EpisodeLine } from '../../src/api/answers.ts'
import { episodeOptions, runOptions } from '../api.ts'
import { formatCount, formatNumber } from '../format.ts'
import { EndBadge, rewardOf, rewardText } from '../ui/badges.tsx'
import { Plot, type Curve } from '../ui/plot.tsx'
import { Answer, Nothing } from '../ui/state.tsx'
import { Text } from '../ui/text.tsx'
import { rewardRange, Tiles } from '../ui/tiles.tsx'
import { Rows } from '../ui/virtual.tsx'
import { MessageRow } from './episode/conversation.tsx'
import { useEpisodes } from './run/episodes-page.tsx'

const route = getRouteApi('/runs/$run/task')

/** How play of one task changed over the steps of a run. */
export function TaskPage() {
  const { run } = route.useParams()
  const { task } = route.useSearch()
  return (
    <div className="stack">
      <div className="head">
        <h1>
          <Text text={task ?? 'No task is named'} />
        </h1>
        <span className="muted">a task, step by step</span>
      </div>
      {task === undefined ? null : <Plays run={run} task={task} />}
    </div>
  )
}

function Plays({ run, task }: { readonly run: string; readonly task: string }) {
  const query = useEpisodes({ run, task })
  const details = useQuery(runOptions(run))
  const isLive = details.data?.run.status === 'running'
  return (
    <Answer query={query} what="its episodes">
      {({ pages }) => {
        const episodes = pages.flatMap((page) => page.episodes)
        if (episodes.length === 0) return <Nothing>This run has not played it.</Nothing>
        return (
          <>
            <div className="head">
              <p className="muted small" role="status">
                {query.hasNextPage
                  ? `The first ${episodes.length} episodes`
                  : formatCount(episodes.length, 'episode')}
                {isLive ? ', so far' : ''}
              </p>
              {query.hasNextPage ? (
                <button type="button" onClick={() => void query.fetchNextPage()}>
                  More
                </button>
              ) : null}
            </div>
            <Rewards run={run} episodes={episodes} />
            <BySteps run={run} episodes={episodes} />
            <SideBySide run={run} episodes={episodes} />
          </>
        )
      }}
    </Answer>
  )
}

interface StepOfTask {
  readonly key: string
  readonly split: 'train' | 'eval'
  readonly evaluation: string | undefined
  readonly step: number
  readonly episodes: readonly EpisodeLine[]
  readonly mean: number | undefined
}

function stepsOf(episodes: readonly EpisodeLine[]): readonly StepOfTask[] {
  const steps = new Map<string, EpisodeLine[]>()
  for (const episode of episodes) {
    const key = `${episode.evaluation ?? episode.split} ${episode.step}`
    steps.set(key, [...(steps.get(key) ?? []), episode])
  }
  return [...steps]
    .map(([key, members]) => {
      const { split, evaluation, step } = members[0]!
      const rewards = members.map(rewardOf).filter((reward) => reward !== undefined)
      return {
        key,
        split,
        evaluation,
        step,
        episodes: members,
        mean:
          rewards.length === 0
            ? undefined
            : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
      }
    })
    .sort((a, b) => a.step - b.step)
}

function Rewards({
  run,
  episodes,
}: {
  readonly run: string
  readonly episodes: readonly EpisodeLine[]
}) {
  const navigate = route.useNavigate()
  const curves = useMemo((): readonly Curve[] => {
    const steps = stepsOf(episodes)
    const names = [...new Set(steps.map(({ split, evaluation }) => evaluation ?? split))]
    return names.map((name) => {
      const own = steps.filter(({ split, evaluation }) => (evaluation ?? split) === name)
      return {
        label: name,
        steps: own.map(({ step }) => step),
        values: own.map(({ mean }) => mean ?? null),
        dashed: own[0]?.split === 'eval',
      }
    })
  }, [episodes])
  return (
    <Plot
      title="Mean reward"
      curves={curves}
      onStep={(step) => {
        const at = stepsOf(episodes).find((each) => each.step === step)
        if (at === undefined) return
        const { split, evaluation } = at
        void navigate({
          to: '/runs/$run/$split/$step',
          params: { run, split, step },
          search: evaluation === undefined ? {} : { evaluation },
        })
      }}
    />
  )
}

function BySteps({
  run,
  episodes,
}: {
  readonly run: string
  readonly episodes: readonly EpisodeLine[]
}) {
  const steps = useMemo(() => stepsOf(episodes), [episodes])
  const range = useMemo(() => rewardRange(episodes), [episodes])
  return (
    <div className="grid">
      <Rows
        label="Steps"
        count={steps.length}
        estimate={() => 66}
        keyOf={(index) => steps[index]!.key}
        row={(index) => {
          const { split, evaluation, step, episodes: members, mean } = steps[index]!
          return (
            <div className="group">
              <div className="what">
                <Link
                  to="/runs/$run/$split/$step"
                  params={{ run, split, step }}
                  search={evaluation === undefined ? {} : { evaluation }}
                >
                  {evaluation ?? split} step {step}
                </Link>
                <div className="small muted">mean {formatNumber(mean)}</div>
              </div>
              <Tiles run={run} episodes={members} range={range} />
            </div>
          )
        }}
      />
    </div>
  )
}

/** Two plays beside each other: unless chosen otherwise, the first and the last. */
function SideBySide({
  run,
  episodes,
}: {
  readonly run: string
  readonly episodes: readonly EpisodeLine[]
}) {
  const { left, right } = route.useSearch()
  const navigate = route.useNavigate()
  const ordered = useMemo(() => episodes.toSorted((a, b) => a.step - b.step), [episodes])
  if (ordered.length < 2) return null
  const sides = [
    ['left', left ?? ordered[0]!.id],
    ['right', right ?? ordered.at(-1)!.id],
  ] as const
  return (
    <section className="stack" aria-label="Two plays side by side">
      <h2>Two plays, side by side</h2>
      <div className="pair">
        {sides.map(([side, id]) => (
          <div key={side} className="stack">
            <select
              aria-label={`Episode on the ${side}`}
              value={id}
              onChange={({ target }) =>
                void navigate({
                  replace: true,
                  resetScroll: false,
                  search: (search) => ({ ...search, [side]: target.value }),
                })
              }
            >
              {ordered.map((episode) => (
                <option key={episode.id} value={episode.id}>
                  {episode.id}: {rewardText(episode) ?? formatNumber(rewardOf(episode))}
                </option>
              ))}
            </select>
            <Side key={id} run={run} id={id} />
          </div>
        ))}
      </div>
    </section>
  )
}

/** Messages of one side; the episode's own page has them all. */
const SIDE_MESSAGES = 20

function Side({ run, id }: { readonly run: string; readonly id: string }) {
  const at = { run, id }
  const query = useQuery(episodeOptions(at))
  return (
    <Answer query={query} what="the episode">
      {({ episode, messages, replies }) => (
        <div>
          <p className="head">
            <Link to="/runs/$run/episode/$" params={{ run, _splat: id }}>
              open
            </Link>
            <EndBadge episode={episode} />
          </p>
          {messages.slice(0, SIDE_MESSAGES).map(({ reply }, index) => (
            <div key={index} className="message">
              <MessageRow
                at={at}
                index={index}
                total={messages.length}
                reply={reply === undefined ? undefined : replies[reply]}
              />
            </div>
          ))}
          {messages.length > SIDE_MESSAGES ? (
            <p className="muted small">and {messages.length - SIDE_MESSAGES} more</p>
          ) : null}
        </div>
      )}
    </Answer>
  )
}
