import type { JsonObject, JsonValue } from '@tiltyard/core'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { changesBetween, jsonUniverse, sameJson } from '../src/index.ts'

// The same cases in every run of the suite.
fc.configureGlobal({ seed: 20_261_129 })

type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
type Table = Record<string, Json>

/** A table so wide that changes are laid over it, with a small record and a list beside it. */
function base() {
  const wide: Table = {}
  for (let index = 0; index < 100; index += 1) wide[`k${index}`] = { n: index, tags: ['a', 'b'] }
  return { wide, small: { x: 1, inner: { y: [1, 2, 3] } }, list: [{ id: 1 }, { id: 2 }] }
}

function opened() {
  const source = jsonUniverse(base())
  const state = source.open([])
  const { universe } = state.handle()
  return {
    state,
    source,
    change: <Result>(work: (draft: ReturnType<typeof base>) => Result) =>
      universe.update((draft) => work(draft as unknown as ReturnType<typeof base>)),
    now: () => state.state as unknown as ReturnType<typeof base>,
  }
}

describe('a wide object after a change', () => {
  test('reads like the copy it stands for: keys, values, entries, membership, JSON, spreading', () => {
    const { change, now } = opened()
    const copy = base().wide
    change(({ wide }) => {
      delete wide['k7']
      wide['new'] = { n: 1 }
      wide['k3'] = null
    })
    delete copy['k7']
    copy['new'] = { n: 1 }
    copy['k3'] = null
    const { wide } = now()
    expect(Object.keys(wide)).toEqual(Object.keys(copy))
    expect(Object.values(wide)).toEqual(Object.values(copy))
    expect(JSON.stringify(wide)).toBe(JSON.stringify(copy))
    expect({ ...wide }).toEqual(copy)
    expect('k7' in wide || Object.hasOwn(wide, 'k7')).toBe(false)
    expect('new' in wide && Object.hasOwn(wide, 'new')).toBe(true)
    expect(wide['k7']).toBeUndefined()
    expect(typeof wide['toString']).toBe('function')
  })

  test('shares every member that was not changed, and costs what was', () => {
    const { change, now, source } = opened()
    const before = source.open([]).state as unknown as ReturnType<typeof base>
    change(({ wide }) => {
      ;(wide['k5'] as Table)['n'] = 50
    })
    expect(now().wide['k6']).toBe(before.wide['k6'])
    expect((now().wide['k5'] as Table)['tags']).toBe((before.wide['k5'] as Table)['tags'])
  })

  test('can’t be written to', () => {
    const { change, now } = opened()
    change(({ wide }) => {
      wide['k1'] = 1
    })
    const { wide } = now()
    expect(() => {
      wide['k1'] = 2
    }).toThrow(TypeError)
    expect(() => delete wide['k2']).toThrow(TypeError)
    expect(() => Object.defineProperty(wide, 'k3', { value: 1 })).toThrow(TypeError)
  })

  test('a change that is taken back is none', () => {
    const { change, state, now } = opened()
    const start = now().wide
    change(({ wide }) => {
      wide['k1'] = 1
      wide['extra'] = 2
    })
    change(({ wide }) => {
      wide['k1'] = { n: 1, tags: ['a', 'b'] }
      delete wide['extra']
    })
    expect(state.changes()).toEqual([])
    expect(sameJson(now().wide, start)).toBe(true)
  })

  test('its changes are listed in the order of their keys, whatever was written first', () => {
    const { change, state } = opened()
    change(({ wide }) => {
      wide['k9'] = 1
      wide['k20'] = 2
    })
    expect(state.changes().map(({ path }) => path)).toEqual(['/wide/k20', '/wide/k9'])
  })
})

describe('a draft', () => {
  test('is like an ordinary object: lists have their methods, keys can be listed, parts can be moved', () => {
    const { change, now } = opened()
    change((draft) => {
      draft.list.push({ id: 3 })
      draft.list.reverse()
      const [last] = draft.list.splice(0, 1)
      draft.list.sort((left, right) => left.id - right.id)
      draft.small.inner.y = draft.small.inner.y
        .filter((value) => value !== 2)
        .map((value) => value * 2)
      expect(Array.isArray(draft.list)).toBe(true)
      expect(Object.keys(draft.small)).toEqual(['x', 'inner'])
      ;(draft as unknown as Table)['moved'] = last as Json
    })
    expect(now()).toMatchObject({
      list: [{ id: 1 }, { id: 2 }],
      small: { inner: { y: [2, 6] } },
      moved: { id: 3 },
    })
  })

  test('a part that stands in two places is the same in both at the end', () => {
    const { change, now } = opened()
    change((draft) => {
      const world = draft as unknown as Table
      world['copy'] = draft.small.inner
      draft.small.inner.y.push(4)
    })
    const { copy } = now() as unknown as { copy: Json }
    expect(copy).toEqual({ y: [1, 2, 3, 4] })
    expect(copy).toBe(now().small.inner)
  })

  test.each<[string, unknown]>([
    ['Date', new Date(0)],
    ['Map', new Map()],
    ['NaN', Number.NaN],
    ['function', () => 1],
    ['bigint', 1n],
    ['undefined', [undefined]],
  ])('refuses what JSON has no place for: %s', (name, value) => {
    const { change, state } = opened()
    const set = () =>
      change((draft) => {
        ;(draft as unknown as Record<string, unknown>)['odd'] = { nested: value }
      })
    expect(set).toThrow(`a universe holds JSON, which has no ${name}`)
    expect(state.changes()).toEqual([])
  })

  test('a base that was frozen only outside is frozen all the way', () => {
    const source = jsonUniverse(Object.freeze({ a: { b: 1 } }))
    const { universe } = source.open([]).handle()
    universe.update((draft) => {
      ;(draft as unknown as { a: { b: number } }).a.b = 2
    })
    expect(source.open([]).state).toEqual({ a: { b: 1 } })
  })

  test('refuses cycles', () => {
    const { change } = opened()
    const loop = () =>
      change((draft) => {
        ;(draft.small as unknown as Record<string, unknown>)['self'] = draft.small
      })
    expect(loop).toThrow('no cycles')
  })

  test('setting undefined removes a member', () => {
    const { change, now } = opened()
    change((draft) => {
      ;(draft.small as { x?: number | undefined }).x = undefined
    })
    expect(Object.keys(now().small)).toEqual(['inner'])
  })

  test('is of no use after its update', () => {
    const { change, now } = opened()
    let kept: ReturnType<typeof base> | undefined
    change((draft) => {
      kept = draft
    })
    expect(() => kept!.list.push({ id: 9 })).toThrow('a draft was used after its update had ended')
    expect(now().list).toHaveLength(2)
  })

  test('keys that name members of every object are keys like others', () => {
    const { change, now, state } = opened()
    change(({ wide, small }) => {
      for (const table of [wide, small as unknown as Table])
        for (const key of ['__proto__', 'constructor', 'hasOwnProperty']) table[key] = 'x'
    })
    expect(JSON.stringify(now().small)).toContain('"__proto__":"x"')
    expect(JSON.stringify(now().wide)).toContain('"__proto__":"x"')
    expect(Object.getPrototypeOf(now().small)).toBe(Object.prototype)
    expect(state.changes()).toHaveLength(6)
  })
})

/** A change as data: where, and what to do there. */
interface Step {
  readonly path: readonly number[]
  readonly act: 'set' | 'delete' | 'push' | 'shift' | 'splice' | 'sort' | 'move' | 'add'
  readonly key: string
  readonly value: JsonValue
}

const json = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, true, 'text', 0, 1.5),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
  ),
})).value

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record<Step>({
    path: fc.array(fc.nat(120), { maxLength: 3 }),
    act: fc.constantFrom('set', 'delete', 'push', 'shift', 'splice', 'sort', 'move', 'add'),
    key: fc.constantFrom('a', 'b', 'k1', 'k99', 'fresh'),
    value: json,
  }),
  { maxLength: 12 },
)

/** So that a step means the same where a key stands elsewhere. */
function sortedKeys(members: object): readonly string[] {
  return Object.keys(members).toSorted((left, right) => (left < right ? -1 : 1))
}

/** Does the step to an ordinary object or to a draft. */
function apply(root: Json, { path, act, key, value }: Step): void {
  let at: Json = root
  for (const index of path) {
    const members = sortedKeys(at as object)
      .map((name) => (at as Table)[name]!)
      .filter((member) => typeof member === 'object' && member !== null)
    if (members.length === 0) break
    at = members[index % members.length]!
  }
  const fresh = structuredClone(value) as Json
  if (Array.isArray(at)) {
    if (act === 'push' || act === 'add') at.push(fresh)
    else if (act === 'shift' || act === 'delete') at.shift()
    else if (act === 'splice') at.splice(0, 1, fresh, structuredClone(fresh))
    else if (act === 'sort')
      at.sort((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1))
    else if (at.length > 0) at[at.length - 1] = fresh
    return
  }
  const table = at as Table
  const keys = sortedKeys(table)
  const first = keys[path.length % Math.max(1, keys.length)]
  if (act === 'delete' && first !== undefined) delete table[first]
  else if (act === 'move' && first !== undefined) {
    const held = table[first]!
    delete table[first]
    table[key] = held
  } else table[key] = fresh
}

/** JSON text that is equal for equal values, whatever the order of keys. */
function canonical(value: JsonValue): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}

test('any changes to a draft end as the same changes to a copy would, in one update or in many', () => {
  fc.assert(
    fc.property(steps, fc.boolean(), (work, together) => {
      const { state, change, source } = opened()
      const copy = base()
      const run = (step: Step) => apply(copy, step)
      for (const step of work) run(step)
      if (together)
        change((draft) => {
          for (const step of work) apply(draft, step)
        })
      else for (const step of work) change((draft) => apply(draft as unknown as Json, step))
      expect(canonical(state.state)).toBe(canonical(copy as unknown as JsonValue))
      expect(sameJson(state.state, copy as unknown as JsonObject)).toBe(true)
      expect(sameJson(copy as unknown as JsonObject, state.state)).toBe(true)
      expect(source.open([]).state).toEqual(base())
      const isSame = sameJson(copy, base())
      expect(state.changes().length === 0).toBe(isSame)
      expect(changesBetween(state.state, copy as unknown as JsonObject)).toEqual([])
    }),
    { numRuns: 300, seed: 20_26 },
  )
})
