import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'

import type { EpisodeLine, GroupLine } from '../../src/api/answers.ts'
import { groupsOptions, runOptions } from '../api.ts'
import { formatCount, formatNumber, words } from '../format.ts'
import { given } from '../search.ts'
import { rewardOf } from '../ui/badges.tsx'
import { FilterBar, type Filter } from '../ui/filter-bar.tsx'
import { useKeys } from '../ui/keys.ts'
import { Answer, Nothing } from '../ui/state.tsx'
import { Text } from '../ui/text.tsx'
import { rewardRange, Tiles } from '../ui/tiles.tsx'
import { Rows } from '../ui/virtual.tsx'

const route = getRouteApi('/runs/$run/$split/$step')

export function StepPage() {
  const { run, split, step } = route.useParams()
  const { evaluation } = route.useSearch()
  const details = useQuery(runOptions(run))
  const isLive = details.data?.run.status === 'running'
  const query = useQuery(groupsOptions({ run, split, evaluation, step }, isLive))
  return (
    <div className="stack">
      <div className="head">
        <h1>
          {split === 'train' ? 'Step' : `${evaluation ?? 'Evaluation'} at step`} {step}
        </h1>
        {isLive && step >= (details.data?.run.steps ?? 0) ? (
          <span className="badge live">under way</span>
        ) : null}
        <Neighbours />
      </div>
      <Answer query={query} what="the step">
        {({ groups }) => <Groups groups={groups} />}
      </Answer>
    </div>
  )
}

/** To the steps before and after that were measured. */
function Neighbours() {
  const { run, split, step } = route.useParams()
  const { evaluation } = route.useSearch()
  const navigate = route.useNavigate()
  const { data } = useQuery(runOptions(run))
  const place = data?.places.find((each) => each.split === split && each.evaluation === evaluation)
  const steps = place?.steps ?? []
  const before = steps.findLast((each) => each < step)
  const after =
    steps.find((each) => each > step) ??
    (split === 'train' && data?.run.status === 'running' && step < data.run.steps
      ? step + 1
      : undefined)
  const go = (to: number | undefined) => {
    if (to !== undefined)
      void navigate({ params: (params) => ({ ...params, step: to }), search: true })
  }
  useKeys({ '[': () => go(before), ']': () => go(after) })
  return (
    <div className="head push">
      <StepLink to={before} title={`← step ${before}`} />
      <StepLink to={after} title={`step ${after} →`} />
    </div>
  )
}

function StepLink({ to, title }: { readonly to: number | undefined; readonly title: string }) {
  if (to === undefined) return null
  return (
    <Link
      from="/runs/$run/$split/$step"
      to="."
      className="button"
      params={(params) => ({ ...params, step: to })}
      search={(search) => search}
    >
      {title}
    </Link>
  )
}

function Groups({ groups }: { readonly groups: readonly GroupLine[] }) {
  const { run, split } = route.useParams()
  const { task, end, trained, min, max } = route.useSearch()
  const navigate = route.useNavigate()
  const episodes = useMemo(() => groups.flatMap((group) => group.episodes), [groups])
  const range = useMemo(() => rewardRange(episodes), [episodes])
  const isWanted = (episode: EpisodeLine, group: GroupLine) => {
    const reward = rewardOf(episode)
    return (
      (task === undefined || episode.task.toLowerCase().includes(task.toLowerCase())) &&
      (end === undefined || episode.end === end) &&
      (trained === undefined || fatesOf(episode, group).includes(trained)) &&
      (min === undefined || (reward !== undefined && reward >= min)) &&
      (max === undefined || (reward !== undefined && reward <= max))
    )
  }
  const isFiltered = [task, end, trained, min, max].some((each) => each !== undefined)
  const wanted = groups.map((group) => ({
    group,
    ids: new Set(group.episodes.filter((episode) => isWanted(episode, group)).map(({ id }) => id)),
  }))
  const shown = wanted.filter(
    ({ group, ids }) =>
      !isFiltered || ids.size > 0 || (group.episodes.length === 0 && trained === 'dropped'),
  )
  const matching = shown.reduce((sum, { ids }) => sum + ids.size, 0)
  if (groups.length === 0)
    return <Nothing>Nothing is recorded of this step yet. Episodes appear as they end.</Nothing>
  const fates = countBy(
    groups.flatMap((group) => group.episodes.flatMap((episode) => fatesOf(episode, group))),
  )
  const ends = countBy(episodes.map((episode) => episode.end))
  const change = (changed: Filter) =>
    void navigate({
      replace: true,
      resetScroll: false,
      search: (kept) => given({ ...kept, ...changed }),
    })
  return (
    <>
      <div className="chips">
        {ends.map(([name, count]) => (
          <Chip
            key={name}
            name={name}
            count={count}
            isOn={end === name}
            onChange={(on) => change({ end: on ? name : undefined })}
          />
        ))}
        {split === 'eval'
          ? null
          : fates.map(([name, count]) => (
              <Chip
                key={name}
                name={name}
                count={count}
                isOn={trained === name}
                onChange={(on) => change({ trained: on ? name : undefined })}
              />
            ))}
      </div>
      <FilterBar
        fields={split === 'eval' ? ['task', 'end', 'reward'] : ['task', 'end', 'trained', 'reward']}
        value={{ task, end, trained, min, max }}
        ends={ends.map(([name]) => name)}
        trained={fates.map(([name]) => name)}
        onChange={change}
      />
      <p className="muted small" role="status">
        {isFiltered
          ? `${formatCount(matching, 'episode')} of ${episodes.length} match, in ${formatCount(shown.length, 'group')}`
          : `${formatCount(episodes.length, 'episode')} in ${formatCount(groups.length, 'group')}`}
      </p>
      {shown.length === 0 ? (
        <Nothing>No episode matches.</Nothing>
      ) : (
        <div className="grid">
          <Rows
            label="Groups"
            count={shown.length}
            estimate={() => 66}
            keyOf={(index) => shown[index]!.group.id}
            row={(index) => {
              const { group, ids } = shown[index]!
              return (
                <div className="group">
                  <GroupHead run={run} group={group} />
                  <Tiles
                    run={run}
                    episodes={group.episodes}
                    range={range}
                    isFaded={({ id }) => !ids.has(id)}
                  />
                </div>
              )
            }}
          />
        </div>
      )}
    </>
  )
}

function GroupHead({
  run,
  group: { group, task, reward, dropped },
}: {
  readonly run: string
  readonly group: GroupLine
}) {
  return (
    <div className="what">
      <Link to="/runs/$run/task" params={{ run }} search={{ task }}>
        <Text text={task} />
      </Link>
      <div className="small muted">
        group {group}
        {reward === undefined ? '' : ` · mean ${formatNumber(reward)}`}
      </div>
      {dropped === undefined ? null : (
        <div className="small bad">
          {isDropped(dropped) ? 'dropped' : 'not trained'}: <Text text={words(dropped)} />
        </div>
      )}
    </div>
  )
}

function Chip({
  name,
  count,
  isOn,
  onChange,
}: {
  readonly name: string
  readonly count: number
  readonly isOn: boolean
  readonly onChange: (on: boolean) => void
}) {
  return (
    <button type="button" aria-pressed={isOn} onClick={() => onChange(!isOn)}>
      {words(name)} <strong>{count}</strong>
    </button>
  )
}

/** What became of an episode, in the words of the filter: one for its training, more for what happened on the way. */
function fatesOf(
  { split, trained, attempt }: EpisodeLine,
  { dropped }: GroupLine,
): readonly string[] {
  if (split === 'eval') return []
  const fate =
    trained === true
      ? 'trained'
      : trained === undefined
        ? 'not decided'
        : trained.startsWith('bad data')
          ? 'bad data'
          : trained
  return [fate, ...(isDropped(dropped) ? ['dropped'] : []), ...(attempt > 0 ? ['retried'] : [])]
}

/** A group may also be left out of training whole, for one of the reasons for which an episode may. */
function isDropped(reason: string | undefined): boolean {
  return reason !== undefined && !['constant', 'alone', 'stale', 'unused'].includes(reason)
}

function countBy(names: readonly string[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}
