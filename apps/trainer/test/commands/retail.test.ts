import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { describeWith, fromEnvironment } from '../../../../test/support/machine.ts'
import { run } from '../support/terminal.ts'

const retail = fileURLToPath(new URL('../../../retail', import.meta.url))

interface GoldJson {
  readonly tasks: Readonly<
    Record<
      string,
      {
        readonly gold_errors: readonly { readonly name: string; readonly error: string }[]
        readonly changes: readonly { readonly path: string }[]
      }
    >
  >
}

function byPath<T extends { readonly path: string }>(changes: readonly T[]): readonly T[] {
  return changes.toSorted((left, right) => (left.path < right.path ? -1 : 1))
}

describeWith(fromEnvironment('TILTYARD_TAU2_DATA'), 'retail from the command line', (data) => {
  test('bundle gold prints what each task’s gold changes: equal to the benchmark’s own', async () => {
    const { code, stdout } = await run(['bundle', 'gold', retail, '--data', data, '--json'])
    expect(code).toBe(0)
    const printed = (JSON.parse(stdout) as GoldJson).tasks
    const { tasks } = JSON.parse(readFileSync(join(data, 'gold-diffs.json'), 'utf8')) as GoldJson
    expect(Object.keys(printed)).toHaveLength(114)
    for (const [id, { gold_errors, changes }] of Object.entries(tasks)) {
      expect(byPath(printed[id]!.changes), id).toEqual(byPath(changes))
      expect(printed[id]!.gold_errors, id).toEqual(
        gold_errors.map(({ name, error }) => ({ name, error })),
      )
    }
  })

  test('its data are named by the environment too; a setting that there isn’t is told', async () => {
    const env = { TILTYARD_TAU2_DATA: data }
    const listed = await run(['bundle', 'list', retail, '--eval', 'smoke', '--json'], { env })
    expect(listed.code).toBe(0)
    expect((JSON.parse(listed.stdout) as { tasks: unknown[] }).tasks).toHaveLength(5)
    const wrong = await run(['bundle', 'list', retail, '--set', 'compta=fixed'], { env })
    expect(wrong.stderr).toContain('unknown setting "compta"; did you mean "compat"?')
    expect(wrong.code).toBe(2)
  })
})

test('retail without its data says where they are', async () => {
  const { code, stderr } = await run(['bundle', 'check', retail])
  expect(stderr).toContain('git clone https://github.com/sierra-research/tau2-bench')
  expect(code).toBe(2)
})
