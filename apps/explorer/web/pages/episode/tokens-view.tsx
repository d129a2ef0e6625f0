import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'

import type { EpisodeAnswer } from '../../../src/api/answers.ts'
import { tokensOptions, type EpisodeAddress } from '../../api.ts'
import { formatNumber } from '../../format.ts'
import { Failed, Nothing } from '../../ui/state.tsx'
import { TokenScale, TokenStrip, type TokenColor } from '../../ui/token-strip.tsx'
import { Rows } from '../../ui/virtual.tsx'

const route = getRouteApi('/runs/$run/episode/$')

/** Tokens of one row: a screenful, so that a long sequence is made as it is looked at. */
const ROW_TOKENS = 400

const colors: readonly TokenColor[] = ['probability', 'advantage', 'mask']

/** A whole sequence as the model saw it: prompt, replies and results, with what trains. */
export function TokensView({
  at,
  answer,
}: {
  readonly at: EpisodeAddress
  readonly answer: EpisodeAnswer
}) {
  const { color = 'probability' } = route.useSearch()
  const navigate = route.useNavigate()
  const [chosen, setChosen] = useState(0)
  const { sequences, tokenizer } = answer
  const length = sequences[chosen]
  if (length === undefined)
    return <Nothing>No tokens are recorded: the episode hasn’t ended.</Nothing>
  return (
    <section className="stack" aria-label="Tokens">
      <div className="bar">
        {sequences.length === 1 ? null : (
          <label>
            Sequence
            <select value={chosen} onChange={({ target }) => setChosen(Number(target.value))}>
              {sequences.map((tokens, index) => (
                <option key={index} value={index}>
                  {index}, {formatNumber(tokens)} tokens
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          Colour
          <select
            value={color}
            onChange={({ target }) =>
              void navigate({
                replace: true,
                resetScroll: false,
                search: (search) => ({ ...search, color: target.value as TokenColor }),
              })
            }
          >
            {colors.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <span className="inline">
          <TokenScale color={color} />
          <span className="muted small">grey: shown to the policy, not sampled</span>
        </span>
      </div>
      <p className="muted small">
        {formatNumber(length)} tokens
        {tokenizer === undefined
          ? '; ids only: name the run’s tokenizer with --tokenizer to see their text'
          : `, spelled by ${tokenizer}`}
      </p>
      <div className="panel">
        <Rows
          key={chosen}
          label="Tokens"
          count={Math.ceil(length / ROW_TOKENS)}
          estimate={() => 260}
          row={(index) => (
            <TokenRow
              at={at}
              sequence={chosen}
              from={index * ROW_TOKENS}
              length={length}
              color={color}
            />
          )}
        />
      </div>
    </section>
  )
}

function TokenRow({
  at,
  sequence,
  from,
  length,
  color,
}: {
  readonly at: EpisodeAddress
  readonly sequence: number
  readonly from: number
  readonly length: number
  readonly color: TokenColor
}) {
  const { data, error } = useQuery(
    tokensOptions(at, sequence, from, Math.min(ROW_TOKENS, length - from)),
  )
  if (data === undefined)
    return error === null ? (
      <p className="muted" style={{ minHeight: 260 }}>
        Reading…
      </p>
    ) : (
      <Failed error={error} />
    )
  return <TokenStrip tokens={data} color={color} label={`tokens from ${from}`} />
}
