import { type Bundle, bundleEnv, goldReport, type ToolContext, ToolError } from '@tiltyard/bundle'
import type { JsonObject } from '@tiltyard/core'
import { beforeAll, expect, test } from 'vitest'

import { describeWith } from '../../../test/support/machine.ts'
import type { Store } from '../src/store.ts'
import {
  comparable,
  goldDiffs,
  loadRetail,
  retailData,
  storeHash,
  type ToolVectors,
  toolVectors,
} from './support/data.ts'

type Call = ToolVectors['scenarios'][number]['calls'][number]

// The store is printed and hashed whole, often.
const long = 120_000

describeWith(retailData, 'the tools of tau2-bench retail', (data) => {
  let bundle: Bundle
  beforeAll(async () => {
    bundle = await loadRetail(data)
  }, long)

  /** Makes calls in a fresh universe, each tool by itself. */
  function makeCalls(calls: readonly Pick<Call, 'name' | 'arguments'>[]) {
    const universe = bundle.universe.open([])
    const states: unknown[] = [universe.state]
    const results = calls.map(({ name, arguments: args }) => {
      const { universe: handle } = universe.handle()
      const tool = bundle.tools.get(name)
      try {
        if (tool === undefined) throw new ToolError('', { shown: bundle.unknownTool!(name) })
        const content = tool.definition.run(
          args as never,
          { universe: handle } as unknown as ToolContext,
        )
        return { content, error: false }
      } catch (error) {
        if (!(error instanceof ToolError)) throw error
        return { content: error.shown, error: true }
      } finally {
        states.push(universe.state)
      }
    })
    return {
      results,
      states,
      changes: comparable(universe.changes()),
      hash: () => hashOf(universe),
    }
  }

  const hashOf = ({ state }: { readonly state: unknown }) => storeHash(state as Store)

  test('the untouched store has the benchmark’s digest', () => {
    const { meta } = goldDiffs(data)
    expect(makeCalls([]).hash()).toBe(meta.initial_db_sha256)
  })

  test(
    'every scenario: texts, error flags, changes and digest are the benchmark’s',
    () => {
      const { scenarios } = toolVectors(data)
      expect(scenarios.length).toBeGreaterThan(80)
      for (const { id, calls, changes, db_sha256 } of scenarios) {
        const made = makeCalls(calls)
        expect(made.results, id).toEqual(calls.map(({ content, error }) => ({ content, error })))
        expect(made.changes, id).toEqual(comparable(changes))
        expect(made.hash(), id).toBe(db_sha256)
      }
    },
    long,
  )

  test(
    'a failing call leaves the store as it was',
    () => {
      const { scenarios } = toolVectors(data)
      let failed = 0
      for (const { id, calls } of scenarios) {
        const { results, states } = makeCalls(calls)
        for (const [index, { error }] of results.entries()) {
          if (!error) continue
          failed += 1
          expect(states[index + 1] === states[index], id).toBe(true)
        }
      }
      expect(failed).toBeGreaterThan(40)
    },
    long,
  )

  test(
    'an episode shows the model the same texts',
    async () => {
      const { scenarios } = toolVectors(data)
      const signal = new AbortController().signal
      for (const { id, calls } of scenarios) {
        const env = bundleEnv(bundle, bundle.tasks.get('0'), { seed: 0 })
        await env.start(signal)
        const toolCalls = calls.map(({ name, arguments: args }, index) => ({
          id: `c${index}`,
          name,
          arguments: args,
        }))
        const step = await env.step(
          { role: 'assistant', content: '', toolCalls },
          { signal, toolCallsLeft: 10 },
        )
        expect(
          step.messages?.map(({ content }) => content),
          id,
        ).toEqual(calls.map(({ content }) => content))
        expect(
          step.calls?.map(({ error }) => error !== undefined),
          id,
        ).toEqual(calls.map(({ error }) => error))
        await env.end({ kind: 'cancelled' })
        await env.close()
      }
    },
    long,
  )

  test(
    'the gold of every task makes the benchmark’s changes, and fails where it fails there',
    async () => {
      const { tasks } = goldDiffs(data)
      expect(Object.keys(tasks).length).toBeGreaterThanOrEqual(80)
      for (const [id, expected] of Object.entries(tasks)) {
        const report = await goldReport(bundle, id)
        expect(comparable(report.changes), id).toEqual(comparable(expected.changes))
        expect(
          report.calls.flatMap(({ name, error, result }) =>
            error === undefined ? [] : [{ name, error: result }],
          ),
          id,
        ).toEqual(expected.gold_errors.map(({ name, error }) => ({ name, error })))
        const calls = bundle.tasks.get(id).gold!.calls as readonly {
          name: string
          arguments: JsonObject
        }[]
        expect(makeCalls(calls).hash(), id).toBe(expected.db_sha256)
      }
    },
    long,
  )
})
