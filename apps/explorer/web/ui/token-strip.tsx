import { useState, type KeyboardEvent } from 'react'

import type { TokensAnswer } from '../../src/api/answers.ts'
import { formatNumber, formatSigned } from '../format.ts'
import { Text } from './text.tsx'

export type TokenColor = 'probability' | 'advantage' | 'mask'

export interface TokenStripProps {
  readonly tokens: TokensAnswer
  readonly color: TokenColor
  readonly label: string
}

/** Tokens one by one, coloured by what is asked; what is known of the chosen one stands below. Arrow keys choose. */
export function TokenStrip({ tokens, color, label }: TokenStripProps) {
  const [chosen, setChosen] = useState<number>()
  const { ids, from } = tokens
  const strongest = Math.max(1e-9, ...(tokens.advantages ?? []).map(Math.abs))
  const idOf = (index: number) => `${label.replaceAll(/\W/g, '-')}-${from + index}`
  const moved = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (by === undefined) return
    event.preventDefault()
    setChosen(chosen === undefined ? 0 : Math.min(Math.max(chosen + by, 0), ids.length - 1))
  }
  return (
    <>
      <div
        className="strip"
        role="listbox"
        tabIndex={0}
        aria-label={label}
        aria-activedescendant={chosen === undefined ? undefined : idOf(chosen)}
        onKeyDown={moved}
        onClick={({ target }) => {
          const place = (target as HTMLElement).closest<HTMLElement>('[data-token]')?.dataset[
            'token'
          ]
          if (place !== undefined) setChosen(Number(place))
        }}
      >
        {ids.map((id, index) => (
          <span
            key={index}
            id={idOf(index)}
            role="option"
            data-token={index}
            aria-label={
              tokens.texts?.[index]?.trim() === '' ? JSON.stringify(tokens.texts[index]) : undefined
            }
            aria-selected={index === chosen}
            className={classOf(tokens, index, color, strongest)}
          >
            {tokens.texts === undefined ? (
              `${id} `
            ) : (
              <Text text={tokens.texts[index] === '' ? '␀' : shownText(tokens.texts[index]!)} />
            )}
          </span>
        ))}
      </div>
      <TokenDetail tokens={tokens} index={chosen} />
    </>
  )
}

/** A line's end is seen before it takes effect. */
function shownText(text: string): string {
  return text.replaceAll('\n', '⏎\n').replaceAll('\t', '⇥\t')
}

function TokenDetail({
  tokens,
  index,
}: {
  readonly tokens: TokensAnswer
  readonly index: number | undefined
}) {
  if (index === undefined)
    return (
      <p className="token-detail">Choose a token to see its numbers; the arrow keys move on.</p>
    )
  const logprob = tokens.logprobs[index] ?? null
  const advantage = tokens.advantages?.[index]
  return (
    <p className="token-detail" role="status">
      <span>
        position <b>{tokens.from + index}</b>
      </span>
      <span>
        id <b>{tokens.ids[index]}</b>
      </span>
      {logprob === null ? (
        <span>shown to the policy, not sampled</span>
      ) : (
        <>
          <span>
            probability <b>{percent(Math.exp(logprob))}</b>
          </span>
          <span>
            log <b>{formatNumber(logprob)}</b>
          </span>
          <span>
            mask <b>{tokens.mask[index]}</b>
          </span>
          <span>
            advantage <b>{advantage === undefined ? 'none' : formatSigned(advantage)}</b>
          </span>
        </>
      )}
    </p>
  )
}

function percent(share: number): string {
  if (share >= 0.9995) return '100 %'
  return share < 0.0001 ? share.toExponential(1) : `${(share * 100).toPrecision(3)} %`
}

function classOf(
  { logprobs, mask, advantages, replies }: TokensAnswer,
  index: number,
  color: TokenColor,
  strongest: number,
): string {
  if (replies[index] === -1) return 'shown'
  if (color === 'mask') return mask[index] === 1 ? 'm1' : 'masked'
  if (color === 'advantage') {
    const advantage = (advantages?.[index] ?? 0) / strongest
    if (advantage === 0) return ''
    if (advantage > 0) return advantage > 0.5 ? 'a0' : 'a1'
    return advantage < -0.5 ? 'n0' : 'n1'
  }
  const probability = Math.exp(logprobs[index] ?? 0)
  if (probability < 0.05) return 'p0'
  if (probability < 0.25) return 'p1'
  if (probability < 0.6) return 'p2'
  return probability < 0.9 ? 'p3' : ''
}

const scales: Readonly<
  Record<TokenColor, readonly (readonly [className: string, text: string])[]>
> = {
  probability: [
    ['p0', '< 5 %'],
    ['p1', '< 25 %'],
    ['p2', '< 60 %'],
    ['p3', '< 90 %'],
  ],
  advantage: [
    ['n0', '−'],
    ['n1', ''],
    ['a1', ''],
    ['a0', '+'],
  ],
  mask: [
    ['m1', 'trained'],
    ['masked', 'not trained'],
  ],
}

export function TokenScale({ color }: { readonly color: TokenColor }) {
  return (
    <span className="scale">
      <span className="strip">
        {scales[color].map(([className, text]) => (
          <span key={className} className={className}>
            {text === '' ? '\u00A0' : text}
          </span>
        ))}
      </span>
    </span>
  )
}
