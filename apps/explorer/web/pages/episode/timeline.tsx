import { getRouteApi, Link } from '@tanstack/react-router'

import type { EpisodeAnswer } from '../../../src/api/answers.ts'
import { formatMs } from '../../format.ts'
import { Nothing } from '../../ui/state.tsx'
import { Text } from '../../ui/text.tsx'
import { Rows } from '../../ui/virtual.tsx'

const route = getRouteApi('/runs/$run/episode/$')

interface Span {
  readonly name: string
  readonly ms: number
  readonly isCall: boolean
  readonly message: number | undefined
}

/** Where the time went: each reply and each call in the order of the conversation. */
export function Timeline({ answer }: { readonly answer: EpisodeAnswer }) {
  const spans = spansOf(answer)
  if (spans.length === 0) return <Nothing>No reply has ended yet.</Nothing>
  const longest = Math.max(...spans.map(({ ms }) => ms), 0.01)
  const sum = (isCall: boolean) =>
    spans.reduce((total, span) => total + (span.isCall === isCall ? span.ms : 0), 0)
  const [sampling, calls] = [sum(false), sum(true)]
  return (
    <section className="stack" aria-label="Timeline">
      <dl className="facts">
        <div>
          <dt>sampling</dt>
          <dd>{formatMs(sampling)}</dd>
        </div>
        <div>
          <dt>calls</dt>
          <dd>{formatMs(calls)}</dd>
        </div>
        <div>
          <dt>all else</dt>
          <dd>{formatMs(Math.max(0, answer.episode.ms - sampling - calls))}</dd>
        </div>
      </dl>
      <div className="panel timeline">
        <Rows
          label="Replies and calls"
          count={spans.length}
          estimate={() => 32}
          row={(index) => <TimelineRow span={spans[index]!} longest={longest} />}
        />
      </div>
    </section>
  )
}

function TimelineRow({
  span: { name, ms, isCall, message },
  longest,
}: {
  readonly span: Span
  readonly longest: number
}) {
  const { run, _splat } = route.useParams()
  return (
    <div className={`span ${isCall ? 'call-time' : ''}`}>
      <span className={isCall ? 'mono' : ''}>
        {message === undefined ? (
          <Text text={name} />
        ) : (
          <Link
            to="/runs/$run/episode/$"
            params={{ run, _splat: _splat ?? '' }}
            search={{ message }}
            data-item
          >
            <Text text={name} />
          </Link>
        )}
      </span>
      <div className="track">
        <div style={{ width: `${(ms / longest) * 100}%` }} />
      </div>
      <span className="end">{formatMs(ms)}</span>
    </div>
  )
}

function spansOf({ messages, replies, calls }: EpisodeAnswer): readonly Span[] {
  const spans: Span[] = []
  const placed = new Set<number>()
  for (const [index, { role, reply }] of messages.entries()) {
    const sampled = reply === undefined ? undefined : replies[reply]
    if (sampled !== undefined)
      spans.push({ name: `reply ${reply}`, ms: sampled.ms, isCall: false, message: index })
    if (role !== 'tool') continue
    for (const [number, call] of calls.entries()) {
      if (call.message !== index) continue
      placed.add(number)
      spans.push({ name: call.name, ms: call.ms, isCall: true, message: index })
    }
  }
  const others = calls.filter((_, number) => !placed.has(number))
  return [
    ...spans,
    ...others.map(({ name, ms }) => ({ name, ms, isCall: true, message: undefined })),
  ]
}
