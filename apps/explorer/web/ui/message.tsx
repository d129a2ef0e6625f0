import { useState, type ReactNode } from 'react'

import type { Clip, MessageBody, ReplyLine } from '../../src/api/answers.ts'
import { askText, type EpisodeAddress, TEXT_CHARS } from '../api.ts'
import { formatMs, formatNumber } from '../format.ts'
import { Failed } from './state.tsx'
import { Text } from './text.tsx'

export interface MessageProps {
  readonly at: EpisodeAddress
  readonly message: MessageBody
  readonly reply: ReplyLine | undefined
  readonly isFound?: boolean
  /** Shown in place of what a reply says. */
  readonly tokens?: ReactNode
}

const titles = { system: 'System', user: 'User', assistant: 'Policy', tool: 'Tool' } as const

/** One message of a conversation. */
export function Message({ at, message, reply, isFound = false, tokens }: MessageProps) {
  const { index, role, content, reasoning, calls, images, answers } = message
  const part = { at, message: index }
  return (
    <article
      className={`${role} ${isFound ? 'found' : ''}`}
      aria-label={`${titles[role]}, message ${index}`}
      data-item
      tabIndex={-1}
    >
      <header>
        <h3>
          {titles[role]}
          {answers?.name === undefined ? null : (
            <>
              {' '}
              <code>
                <Text text={answers.name} />
              </code>
            </>
          )}
        </h3>
        <span>#{index}</span>
        {reply === undefined ? null : <ReplyFacts reply={reply} />}
        {answers?.ms === undefined ? null : <span>{formatMs(answers.ms)}</span>}
        {answers?.error === undefined ? null : (
          <span className="badge bad">
            <Text text={answers.error} />
          </span>
        )}
      </header>
      {tokens ?? (
        <>
          {reasoning === undefined ? null : (
            <div className="reasoning">
              <div className="small">reasoning</div>
              <LongText {...part} part="reasoning" clip={reasoning} />
            </div>
          )}
          <div className="text">
            {content.chars === 0 ? null : (
              <LongText {...part} part="content" clip={content} isCode={role === 'tool'} />
            )}
            {images.map(({ format, width, height, bytes }, number) => (
              <p key={number} className="muted small">
                [{format} image, {width} × {height}, {formatNumber(bytes)} bytes]
              </p>
            ))}
          </div>
          {calls.map(({ id, name, arguments: given, error }, number) => (
            <div key={id} className="call">
              <div className="name">
                <Text text={name} />
              </div>
              <LongText {...part} part={`call:${number}`} clip={given} isCode />
              {error === undefined ? null : (
                <p className="bad small">
                  not run: <Text text={error} />
                </p>
              )}
            </div>
          ))}
        </>
      )}
      {reply?.malformed.map(({ error, raw }, number) => (
        <div key={number} className="call">
          <p className="bad small">a call that can’t be read: {error}</p>
          <pre className="said code">
            <Text text={raw} />
          </pre>
        </div>
      ))}
      {answers?.result === undefined ? null : (
        <details className="call">
          <summary>All that the tool gave, {formatNumber(answers.result.chars)} characters</summary>
          <LongText {...part} part="result" clip={answers.result} isCode />
        </details>
      )}
    </article>
  )
}

function ReplyFacts({
  reply: { version, length, stop, ms, trained, restart, agent, purpose },
}: {
  readonly reply: ReplyLine
}) {
  return (
    <>
      <span title={version.id}>step {version.step}</span>
      <span>{formatNumber(length)} tokens</span>
      <span>{formatMs(ms)}</span>
      {stop === 'length' ? <span className="badge warn">stopped at its limit</span> : null}
      {trained ? null : <span className="badge">context only</span>}
      {restart === undefined ? null : <span className="badge warn">begins anew: {restart}</span>}
      {agent === undefined ? null : <span className="badge">{agent}</span>}
      {purpose === undefined ? null : <span className="badge">{purpose}</span>}
    </>
  )
}

/** A text whose rest is fetched when it is asked for. */
function LongText({
  at,
  message,
  part,
  clip,
  isCode = false,
}: {
  readonly at: EpisodeAddress
  readonly message: number
  readonly part: string
  readonly clip: Clip
  readonly isCode?: boolean
}) {
  const [more, setMore] = useState('')
  const [state, setState] = useState<'idle' | 'reading' | { readonly error: unknown }>('idle')
  const shown = clip.text + more
  const left = clip.chars - shown.length
  const read = async () => {
    setState('reading')
    try {
      const { text } = await askText({ ...at, message, part, from: shown.length })
      setMore(more + text)
      setState('idle')
    } catch (error) {
      setState({ error })
    }
  }
  return (
    <>
      <pre className={`said ${isCode ? 'code' : ''}`}>
        <Text text={shown} />
      </pre>
      {left <= 0 ? null : (
        <div className="more">
          <button type="button" disabled={state === 'reading'} onClick={() => void read()}>
            {state === 'reading'
              ? 'Reading…'
              : left > TEXT_CHARS
                ? `Next ${formatNumber(TEXT_CHARS)} of ${formatNumber(left)} characters left`
                : `The other ${formatNumber(left)} characters`}
          </button>
        </div>
      )}
      {typeof state === 'object' ? <Failed error={state.error} /> : null}
    </>
  )
}
