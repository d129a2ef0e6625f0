import type { CutReason, EndReason } from '@tiltyard/core'
import { useEffect, useRef } from 'react'

import { words } from '../format.ts'

export interface Filter {
  readonly split?: 'train' | 'eval' | undefined
  readonly step?: number | undefined
  readonly task?: string | undefined
  readonly end?: string | undefined
  readonly trained?: string | undefined
  readonly min?: number | undefined
  readonly max?: number | undefined
}

type Field = 'split' | 'step' | 'task' | 'exact task' | 'end' | 'trained' | 'reward'

/** Ends that an episode can have, for a choice where they aren't all known. One that core adds is missing here until it is named. */
const endNames: Readonly<
  Record<Exclude<EndReason['kind'], 'cut'> | 'unfinished' | CutReason, true>
> = {
  completed: true,
  failed: true,
  cancelled: true,
  unfinished: true,
  reply_tokens: true,
  episode_tokens: true,
  sampled_tokens: true,
  context_window: true,
  turns: true,
  replies: true,
  tool_calls: true,
  episode_time: true,
  malformed_reply: true,
}
const knownEnds = Object.keys(endNames)

export interface FilterBarProps {
  readonly fields: readonly Field[]
  readonly value: Filter
  readonly onChange: (change: Filter) => void
  /** What can be chosen, where it is known. */
  readonly ends?: readonly string[]
  readonly trained?: readonly string[]
}

export function FilterBar({
  fields,
  value,
  onChange,
  ends = knownEnds,
  trained = [],
}: FilterBarProps) {
  const has = (field: Field) => fields.includes(field)
  return (
    <form
      className="bar"
      role="search"
      aria-label="Filter"
      onSubmit={(event) => event.preventDefault()}
    >
      {has('task') || has('exact task') ? (
        <label>
          {has('task') ? 'Task' : 'Task (whole name)'}
          <Typed
            type="search"
            isSearch
            value={value.task ?? ''}
            onChange={(task) => onChange({ task: task === '' ? undefined : task })}
          />
        </label>
      ) : null}
      {has('split') ? (
        <label>
          Split
          <select
            value={value.split ?? ''}
            onChange={({ target }) =>
              onChange({
                split: target.value === '' ? undefined : (target.value as 'train' | 'eval'),
              })
            }
          >
            <option value="">both</option>
            <option value="train">train</option>
            <option value="eval">eval</option>
          </select>
        </label>
      ) : null}
      {has('step') ? (
        <label>
          Step
          <Typed
            type="number"
            value={value.step?.toString() ?? ''}
            onChange={(text) => onChange({ step: numberOf(text) })}
          />
        </label>
      ) : null}
      {has('end') ? (
        <Choice title="End" value={value.end} names={ends} onChange={(end) => onChange({ end })} />
      ) : null}
      {has('trained') ? (
        <Choice
          title="Training"
          value={value.trained}
          names={trained}
          onChange={(chosen) => onChange({ trained: chosen })}
        />
      ) : null}
      {has('reward') ? (
        <>
          <label>
            Reward from
            <Typed
              type="number"
              value={value.min?.toString() ?? ''}
              onChange={(text) => onChange({ min: numberOf(text) })}
            />
          </label>
          <label>
            to
            <Typed
              type="number"
              value={value.max?.toString() ?? ''}
              onChange={(text) => onChange({ max: numberOf(text) })}
            />
          </label>
        </>
      ) : null}
      {Object.values(value).every((each) => each === undefined) ? null : (
        <button
          type="button"
          onClick={() =>
            onChange({
              split: undefined,
              step: undefined,
              task: undefined,
              end: undefined,
              trained: undefined,
              min: undefined,
              max: undefined,
            })
          }
        >
          Clear
        </button>
      )}
    </form>
  )
}

function numberOf(text: string): number | undefined {
  const value = Number(text)
  return text.trim() === '' || !Number.isFinite(value) ? undefined : value
}

function Choice({
  title,
  value,
  names,
  onChange,
}: {
  readonly title: string
  readonly value: string | undefined
  readonly names: readonly string[]
  readonly onChange: (name: string | undefined) => void
}) {
  const all = value === undefined || names.includes(value) ? names : [...names, value]
  return (
    <label>
      {title}
      <select
        value={value ?? ''}
        onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
      >
        <option value="">any</option>
        {all.map((name) => (
          <option key={name} value={name}>
            {words(name)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Follows the address, and lets go of what is typed when it is entered or left: each change asks the index. */
function Typed({
  type,
  value,
  isSearch = false,
  onChange,
}: {
  readonly type: 'search' | 'number'
  readonly value: string
  readonly isSearch?: boolean
  readonly onChange: (text: string) => void
}) {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (input.current !== null && document.activeElement !== input.current)
      input.current.value = value
  }, [value])
  const done = (text: string) => {
    if (text !== value) onChange(text)
  }
  return (
    <input
      ref={input}
      type={type}
      step="any"
      defaultValue={value}
      size={type === 'number' ? 6 : 22}
      {...(type === 'number' ? { style: { width: 96 } } : {})}
      {...(isSearch ? { 'data-search': '' } : {})}
      onBlur={({ target }) => done(target.value)}
      onKeyDown={({ key, currentTarget }) => {
        if (key === 'Enter') done(currentTarget.value)
      }}
    />
  )
}
