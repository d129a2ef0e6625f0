import { StateError } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { changesBetween, jsonUniverse, sameJson } from '../src/index.ts'

const base = () => ({
  users: { ann: { email: 'a@x.org', tags: ['new'] }, bob: { email: 'b@x.org', tags: [] } },
  count: 2,
})
type Base = ReturnType<typeof base>

function opened(source = jsonUniverse(base())) {
  const state = source.open([])
  const { universe, release } = state.handle()
  return { state, universe, release, now: () => state.state as unknown as Base }
}

describe('a universe', () => {
  test('F25: a change in one is seen in no other, and not in the base', () => {
    const source = jsonUniverse(base())
    const [one, other] = [opened(source), opened(source)]
    one.universe.update((draft) => {
      ;(draft as unknown as Base).users.ann.email = 'new@x.org'
    })
    expect(one.now().users.ann.email).toBe('new@x.org')
    expect(other.now()).toEqual(base())
    expect(source.open([]).state).toEqual(base())
  })

  test('shares with the base all that was not written to', () => {
    const source = jsonUniverse(base())
    const [one, untouched] = [opened(source), opened(source)]
    one.universe.update((draft) => {
      ;(draft as unknown as Base).users.ann.email = 'new@x.org'
    })
    expect(one.now().users.bob).toBe(untouched.now().users.bob)
    expect(one.now().users.ann.tags).toBe(untouched.now().users.ann.tags)
    expect(one.now().users.ann).not.toBe(untouched.now().users.ann)
  })

  test('10,000 of them on a large base take no memory to speak of until they are written to', () => {
    const records = Array.from({ length: 2_000 }, (_, index) => [
      `user_${index}`,
      { email: `user${index}@x.org`, address: { street: 'x'.repeat(500), zip: String(index) } },
    ])
    const source = jsonUniverse({ users: Object.fromEntries(records) })
    const heapBefore = process.memoryUsage().heapUsed
    const states = Array.from({ length: 10_000 }, () => source.open([]))
    const perUniverse = (process.memoryUsage().heapUsed - heapBefore) / states.length
    expect(perUniverse).toBeLessThan(20_000)
    expect(states.every(({ state }) => state === states[0]!.state)).toBe(true)
  })

  test('is frozen: a tool that writes to what it read throws', () => {
    const { now } = opened()
    expect(() => {
      now().users.ann.email = 'x'
    }).toThrow(TypeError)
    expect(() => now().users.ann.tags.push('x')).toThrow(TypeError)
  })

  test('is frozen also where it was changed', () => {
    const { universe, now } = opened()
    universe.update((draft) => {
      ;(draft as unknown as Base).users.ann.tags.push('vip')
    })
    expect(() => now().users.ann.tags.push('x')).toThrow(TypeError)
  })

  test('keeps nothing of a change that threw', () => {
    const { universe, now } = opened()
    const change = () =>
      universe.update((draft) => {
        ;(draft as unknown as Base).count = 3
        throw new Error('no')
      })
    expect(change).toThrow('no')
    expect(now().count).toBe(2)
  })

  test('gives back what a change returns, also a part of the draft', () => {
    const { universe } = opened()
    const ann = universe.update((draft) => {
      const found = (draft as unknown as Base).users.ann
      found.email = 'y@x.org'
      return found
    })
    expect(ann).toEqual({ email: 'y@x.org', tags: ['new'] })
    expect(universe.update(() => 7)).toBe(7)
  })

  test('refuses writes through a handle that was released', () => {
    const { universe, release, now } = opened()
    release()
    expect(() => universe.update(() => {})).toThrow(StateError)
    expect(now()).toEqual(base())
  })

  test('lists its changes as JSON Pointers with before and after, list items by index', () => {
    const { state, universe } = opened()
    universe.update((draft) => {
      const world = draft as unknown as Base & { 'a/b~c'?: number }
      world.users.ann.tags.push('vip')
      world['a/b~c'] = 1
      delete (world.users as Partial<Base['users']>).bob
    })
    expect(state.changes()).toEqual([
      { path: '/users/ann/tags/1', after: 'vip' },
      { path: '/users/bob', before: { email: 'b@x.org', tags: [] } },
      { path: '/a~1b~0c', after: 1 },
    ])
  })

  test('begins with what a task’s start sets and removes, and changes are counted from there', () => {
    const source = jsonUniverse(base())
    const state = source.open([
      { path: '/users/ann/email', value: 'start@x.org' },
      { path: '/users/cy', value: { email: 'c@x.org' } },
      { path: '/users/bob' },
    ])
    expect(state.state).toEqual({
      users: { ann: { email: 'start@x.org', tags: ['new'] }, cy: { email: 'c@x.org' } },
      count: 2,
    })
    expect(state.changes()).toEqual([])
  })
})

describe('comparing JSON', () => {
  test('the order of keys does not count, the order of items does', () => {
    expect(sameJson({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true)
    expect(sameJson([1, 2], [2, 1])).toBe(false)
  })

  test('null, absent, an empty list and an empty object are four things', () => {
    const values = [null, undefined, [], {}] as const
    for (const left of values)
      for (const right of values) expect(sameJson(left, right)).toBe(left === right)
  })

  test('members that only a prototype has are not there', () => {
    expect(sameJson({}, { toString: 'x' })).toBe(false)
    expect(changesBetween({}, JSON.parse('{"__proto__": 1}'))).toEqual([
      { path: '/__proto__', after: 1 },
    ])
  })

  test('a value that replaces one of another kind is one change', () => {
    expect(changesBetween({ a: { b: 1 } }, { a: [1] })).toEqual([
      { path: '/a', before: { b: 1 }, after: [1] },
    ])
  })
})
