import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'

import type { EpisodeAnswer, ReplyLine } from '../../../src/api/answers.ts'
import {
  findOptions,
  messagesOptions,
  MESSAGES,
  TOKENS,
  tokensOptions,
  type EpisodeAddress,
} from '../../api.ts'
import { formatCount } from '../../format.ts'
import { useKeys } from '../../ui/keys.ts'
import { Message } from '../../ui/message.tsx'
import { Failed, Nothing } from '../../ui/state.tsx'
import { TokenScale, TokenStrip, type TokenColor } from '../../ui/token-strip.tsx'
import { Rows, type RowsHandle } from '../../ui/virtual.tsx'

const route = getRouteApi('/runs/$run/episode/$')

export interface ConversationProps {
  readonly at: EpisodeAddress
  readonly answer: EpisodeAnswer
}

const colors: readonly TokenColor[] = ['probability', 'advantage', 'mask']

/** The messages as a chat; replies also token by token. The address says which message is looked at. */
export function Conversation({ at, answer }: ConversationProps) {
  const { messages, replies, tokenizer } = answer
  const { message: linked, color, find = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const rows = useRef<RowsHandle>(null)
  const search = (
    change: { readonly color?: TokenColor; readonly find?: string; readonly message?: number },
    without: readonly string[] = [],
  ) =>
    void navigate({
      replace: true,
      resetScroll: false,
      search: (kept) =>
        Object.fromEntries(
          Object.entries({ ...kept, ...change }).filter(([name]) => !without.includes(name)),
        ),
    })
  const toggle = () =>
    color === undefined ? search({ color: 'probability' }) : search({}, ['color'])
  useKeys({ t: toggle })
  useEffect(() => {
    if (linked !== undefined) rows.current?.scrollTo(linked)
  }, [linked])
  if (messages.length === 0) return <Nothing>Nothing was said yet.</Nothing>
  return (
    <section aria-label="Conversation">
      <div className="toolbar">
        <button type="button" aria-pressed={color !== undefined} onClick={toggle}>
          Tokens
        </button>
        {color === undefined ? null : (
          <>
            <select
              aria-label="Colour of tokens"
              value={color}
              onChange={({ target }) => search({ color: target.value as TokenColor })}
            >
              {colors.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
            <TokenScale color={color} />
            {tokenizer === undefined && answer.ended ? (
              <span className="small muted">
                ids only: name the run’s tokenizer with --tokenizer to see their text
              </span>
            ) : null}
          </>
        )}
        <Find
          at={at}
          find={find}
          onFind={(text) => (text === '' ? search({}, ['find']) : search({ find: text }))}
          onMessage={(message) => search({ message })}
        />
      </div>
      <Rows
        label="Messages"
        handle={rows}
        count={messages.length}
        estimate={(index) => 70 + Math.min(messages[index]!.chars, 8_000) / 5}
        keyOf={(index) => index}
        row={(index) => (
          <div className="message">
            <MessageRow
              at={at}
              index={index}
              total={messages.length}
              reply={replyOf(answer, index)}
              color={color}
              isFound={index === linked}
            />
          </div>
        )}
      />
      <p className="muted small">
        {formatCount(messages.length, 'message')}, {formatCount(replies.length, 'reply', 'replies')}
      </p>
    </section>
  )
}

function replyOf({ messages, replies }: EpisodeAnswer, index: number): ReplyLine | undefined {
  const number = messages[index]?.reply
  return number === undefined ? undefined : replies[number]
}

/** A message's texts come with those of its neighbours. */
export function MessageRow({
  at,
  index,
  total,
  reply,
  color,
  isFound = false,
}: {
  readonly at: EpisodeAddress
  readonly index: number
  /** Messages that there are now: a page that wasn't full is asked for again when there are more. */
  readonly total: number
  readonly reply: ReplyLine | undefined
  readonly color?: TokenColor | undefined
  readonly isFound?: boolean
}) {
  const page = Math.floor(index / MESSAGES)
  const { data, error } = useQuery(
    messagesOptions(at, page, Math.min(total, (page + 1) * MESSAGES)),
  )
  const message = data?.messages[index % MESSAGES]
  if (message === undefined)
    return error === null ? (
      <article aria-busy="true" style={{ minHeight: 58 }} />
    ) : (
      <Failed error={error} />
    )
  return (
    <Message
      at={at}
      message={message}
      reply={reply}
      isFound={isFound}
      {...(reply === undefined || color === undefined || reply.length === 0
        ? {}
        : { tokens: <ReplyTokens at={at} index={index} reply={reply} color={color} /> })}
    />
  )
}

function ReplyTokens({
  at,
  index,
  reply: { sequence, start, length },
  color,
}: {
  readonly at: EpisodeAddress
  readonly index: number
  readonly reply: ReplyLine
  readonly color: TokenColor
}) {
  const [page, setPage] = useState(0)
  const from = start + page * TOKENS
  const { data, error } = useQuery(
    tokensOptions(at, sequence, from, Math.min(TOKENS, start + length - from)),
  )
  if (data === undefined)
    return error === null ? (
      <p className="tokens muted">Reading tokens…</p>
    ) : (
      <Failed error={error} />
    )
  const pages = Math.ceil(length / TOKENS)
  return (
    <div className="tokens">
      <TokenStrip tokens={data} color={color} label={`tokens of message ${index}`} />
      {pages === 1 ? null : (
        <div className="more">
          <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
            ←
          </button>
          <span>
            tokens {page * TOKENS} to {Math.min((page + 1) * TOKENS, length)} of {length}
          </span>
          <button type="button" disabled={page === pages - 1} onClick={() => setPage(page + 1)}>
            →
          </button>
        </div>
      )}
    </div>
  )
}

/** Finds a text in all messages, those that aren't on the page among them. */
function Find({
  at,
  find,
  onFind,
  onMessage,
}: {
  readonly at: EpisodeAddress
  readonly find: string
  readonly onFind: (text: string) => void
  readonly onMessage: (message: number) => void
}) {
  const input = useRef<HTMLInputElement>(null)
  const [place, setPlace] = useState(-1)
  const { data } = useQuery(findOptions(at, find))
  const hits = find === '' ? [] : (data?.hits ?? [])
  const go = (to: number) => {
    const next = (to + hits.length) % hits.length
    setPlace(next)
    onMessage(hits[next]!.message)
  }
  return (
    <form
      role="search"
      className="push head"
      onSubmit={(event) => {
        event.preventDefault()
        const text = input.current?.value ?? ''
        if (text === find && hits.length > 0) return go(place + 1)
        setPlace(-1)
        onFind(text)
      }}
    >
      <input
        type="search"
        ref={input}
        data-search
        aria-label="Find in the conversation"
        placeholder="find"
        defaultValue={find}
      />
      {find === '' ? null : (
        <>
          <span className="small muted" role="status">
            {data === undefined
              ? '…'
              : `${place === -1 ? '' : `${place + 1} of `}${hits.length}${data.more ? '+' : ''}`}
          </span>
          <button
            type="button"
            disabled={hits.length === 0}
            aria-label="Next hit"
            onClick={() => go(place + 1)}
          >
            ↓
          </button>
        </>
      )}
    </form>
  )
}
