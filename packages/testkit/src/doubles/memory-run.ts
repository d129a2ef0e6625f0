import {
  endName,
  episodeId,
  groupId,
  runGroupName,
  type CallEvent,
  type EpisodeFilter,
  type EpisodeKey,
  type EpisodeRecord,
  type EpisodeSummary,
  type FailureEvent,
  type GroupEvent,
  type GroupKey,
  type GroupSummary,
  type RunDetails,
  type RunEvent,
  type RunRecord,
  type RunSummary,
} from '@tiltyard/core'

/** A run in memory: what its writers appended, in order. */
export interface MemoryRun {
  readonly record: RunRecord
  entries: MemoryEntry[]
  epoch: number
  /** Its writer has not closed. */
  isAlive: boolean
}

export interface MemoryEntry {
  readonly epoch: number
  readonly event: RunEvent
}

/** What a resumed run keeps: nothing of a step after `last`. */
export function entriesUpTo(entries: readonly MemoryEntry[], last: number): MemoryEntry[] {
  return entries.filter(({ event }) => stepsOf(event) <= last + 1)
}

/** How many steps a run must have done for this event to belong to it. */
function stepsOf(event: RunEvent): number {
  if (event.type === 'checkpoint') return event.step
  if (event.type === 'failure') return (event.key?.step ?? event.step ?? -1) + 1
  return ('step' in event ? event.step : event.key.step) + 1
}

/** The newest event of each place; of an episode that was played again, the newer play alone. */
function folded({ entries }: MemoryRun): readonly RunEvent[] {
  const plays = new Map<string, number>()
  for (const { epoch, event } of entries)
    if (event.type === 'episode') plays.set(episodeId(event.key), epoch)
  const places = new Map<string, RunEvent>()
  for (const { epoch, event } of entries) {
    const play =
      'key' in event && event.key !== undefined && 'member' in event.key
        ? plays.get(episodeId(event.key))
        : undefined
    if (play === undefined || epoch >= play) places.set(placeOf(event), event)
  }
  return [...places.values()]
}

/** Events of one place replace each other. Calls and failures have no place: all that differ are kept. */
function placeOf(event: RunEvent): string {
  const { type } = event
  if (type === 'call' || type === 'failure') return JSON.stringify(event)
  if (type === 'metrics') return `metrics ${runGroupName(event)}`
  if (type === 'checkpoint') return `checkpoint ${event.name}`
  if (type === 'group') return `group ${groupId(event.key)}`
  if (type === 'step') return `step ${event.step}`
  return type === 'end' ? 'end' : `${type} ${episodeId(event.key)}`
}

function ofType<Type extends RunEvent['type']>(
  events: readonly RunEvent[],
  type: Type,
): readonly Extract<RunEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type)
}

export function runSummary(run: MemoryRun): RunSummary {
  const { name, startedAt } = run.record
  const end = endOf(run)
  const steps = ofType(folded(run), 'step').map(({ step }) => step)
  return {
    name,
    status: end?.status ?? (run.isAlive ? 'running' : 'interrupted'),
    startedAt,
    ...(steps.length === 0 ? {} : { step: Math.max(...steps) }),
  }
}

function endOf({ entries, epoch }: MemoryRun) {
  const own = entries.filter((entry) => entry.epoch === epoch).map(({ event }) => event)
  return ofType(own, 'end').at(-1)
}

export function runDetails(run: MemoryRun): RunDetails {
  const events = folded(run)
  const end = endOf(run)
  return {
    record: run.record,
    summary: runSummary(run),
    steps: ofType(events, 'step').toSorted((a, b) => a.step - b.step),
    metrics: ofType(events, 'metrics'),
    checkpoints: ofType(events, 'checkpoint')
      .filter(({ deleted }) => deleted !== true)
      .toSorted((a, b) => a.step - b.step),
    failures: ofType(events, 'failure').filter(({ key }) => key === undefined),
    ...(end === undefined ? {} : { end }),
  }
}

/** Everything about the episodes of a run, in their order. */
export function episodesOf(run: MemoryRun): readonly EpisodeRecord[] {
  const parts = new Map<string, EpisodeParts>()
  const partsOf = (key: EpisodeKey) => {
    const id = episodeId(key)
    const found = parts.get(id) ?? { key, journal: [], failures: [] }
    parts.set(id, found)
    return found
  }
  for (const event of folded(run)) {
    if (event.type === 'episode') partsOf(event.key).episode = event
    else if (event.type === 'score') partsOf(event.key).score = event
    else if (event.type === 'training') partsOf(event.key).training = event
    else if (event.type === 'call') partsOf(event.key).journal.push(event)
    else if (event.type === 'failure' && event.key !== undefined)
      partsOf(event.key).failures.push(event)
  }
  return [...parts.values()]
    .filter(({ episode, journal }) => episode !== undefined || journal.length > 0)
    .toSorted((a, b) => compareKeys(a.key, b.key))
    .map(({ key, ...found }) => ({ summary: summaryOf(key, found), ...found }))
}

interface EpisodeParts {
  readonly key: EpisodeKey
  readonly journal: CallEvent[]
  readonly failures: FailureEvent[]
  episode?: Extract<RunEvent, { type: 'episode' }>
  score?: Extract<RunEvent, { type: 'score' }>
  training?: Extract<RunEvent, { type: 'training' }>
}

function summaryOf(key: EpisodeKey, parts: Omit<EpisodeParts, 'key'>): EpisodeSummary {
  const { episode, score, training, journal } = parts
  const head = episode ?? journal[0]!
  const sampled = episode?.replies.reduce((sum, { length }) => sum + length, 0) ?? 0
  const positions = episode?.sequences.reduce((sum, { ids }) => sum + ids.length, 0) ?? 0
  const replies =
    episode?.replies.length ??
    journal.flatMap(({ messages }) => messages).filter(({ role }) => role === 'assistant').length
  const calls =
    episode?.calls.length ?? journal.reduce((sum, { calls: made }) => sum + (made?.length ?? 0), 0)
  const scores = Object.entries(score?.scores ?? {}).map(([step, given]) => [
    step,
    'value' in given ? { value: given.value } : given,
  ])
  return {
    key,
    task: head.task,
    fingerprint: head.fingerprint,
    ...(episode === undefined ? {} : { end: episode.end }),
    scores: Object.fromEntries(scores),
    ...(score === undefined ? {} : { reward: score.reward }),
    ...(training?.advantage === undefined ? {} : { advantage: training.advantage }),
    ...(training === undefined ? {} : { trained: training.untrained ?? true }),
    replies,
    calls,
    promptTokens: positions - sampled,
    sampledTokens: sampled,
    startedAt: head.startedAt,
    ms: episode?.ms ?? 0,
  }
}

export function groupsOf(run: MemoryRun): readonly GroupSummary[] {
  const groups = new Map<string, { key: GroupKey; event?: GroupEvent; members: EpisodeSummary[] }>()
  const groupOf = ({ split, evaluation, step, group }: GroupKey) => {
    const key = { split, ...(evaluation === undefined ? {} : { evaluation }), step, group }
    const found = groups.get(groupId(key)) ?? { key, members: [] }
    groups.set(groupId(key), found)
    return found
  }
  for (const event of ofType(folded(run), 'group')) groupOf(event.key).event = event
  for (const { summary } of episodesOf(run)) groupOf(summary.key).members.push(summary)
  return [...groups.values()]
    .toSorted((a, b) => compareKeys(a.key, b.key))
    .map(({ key, event, members }) => {
      // Of a member that was played again the last play counts; episodes are in order of attempt.
      const last = [...new Map(members.map((one) => [one.key.member, one])).values()]
      const rewards = last.flatMap(({ reward }) =>
        reward !== undefined && 'reward' in reward ? [reward.reward] : [],
      )
      const sum = rewards.reduce((total, reward) => total + reward, 0)
      return {
        key,
        task: event?.task ?? members[0]!.task,
        members: event?.members ?? last.length,
        ...(event?.dropped === undefined ? {} : { dropped: event.dropped }),
        ...(rewards.length === 0 ? {} : { reward: sum / rewards.length }),
      }
    })
}

/** By split (train first), evaluation, step, group, member, attempt. */
function compareKeys(a: GroupKey & Partial<EpisodeKey>, b: GroupKey & Partial<EpisodeKey>): number {
  if (a.split !== b.split) return a.split === 'train' ? -1 : 1
  const [left, right] = [a.evaluation ?? '', b.evaluation ?? '']
  if (left !== right) return left < right ? -1 : 1
  return (
    a.step - b.step ||
    a.group - b.group ||
    (a.member ?? 0) - (b.member ?? 0) ||
    (a.attempt ?? 0) - (b.attempt ?? 0)
  )
}

/** Whether an episode is what a filter asks for. */
export function isWanted(summary: EpisodeSummary, filter: EpisodeFilter): boolean {
  const { key, task, end, reward, trained } = summary
  const value = reward !== undefined && 'reward' in reward ? reward.reward : undefined
  const { minReward, maxReward } = filter
  return (
    is(filter.split, key.split) &&
    is(filter.evaluation, key.evaluation) &&
    is(filter.step, key.step) &&
    is(filter.group, key.group) &&
    is(filter.task, task) &&
    is(filter.end, end === undefined ? 'unfinished' : endName(end)) &&
    (minReward === undefined || (value !== undefined && value >= minReward)) &&
    (maxReward === undefined || (value !== undefined && value <= maxReward)) &&
    is(filter.trained, trained === undefined ? undefined : trained === true)
  )
}

function is<T>(wanted: T | undefined, found: T | undefined): boolean {
  return wanted === undefined || wanted === found
}
