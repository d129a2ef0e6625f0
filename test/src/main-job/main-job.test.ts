import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { run } from '../../support/run.ts'

const program = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))
const recipe = fileURLToPath(new URL('recipe.ts', import.meta.url))

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-main-job-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Runs the program as a person would, output into a pipe. */
const tiltyard = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  run(process.execPath, [program, ...args], { cwd: folder, env })

const metricsOf = (name: string) =>
  readFileSync(join(folder, 'runs', name, 'metrics.jsonl'), 'utf8')

describe('the main job, from the command line', () => {
  test('trains, tells how it goes in plain lines, and says what to type next', async () => {
    const { code, stdout, stderr } = await tiltyard(['train', recipe])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^small-desk: nano \(0\.\d+ M parameters\) on onnxruntime-/m)
    expect(stdout).toMatch(/^warm start 1\/5 {2}loss \d\.\d{3}/m)
    for (const step of [1, 2, 3, 4])
      expect(stdout).toMatch(new RegExp(`^step ${step}/4 {2}reward \\d`, 'm'))
    expect(stdout.match(/^held-out success \d+\.\d%/gm)).toHaveLength(3)
    expect(stdout).toContain('reward of each step (·) and success on evaluated tasks (●)')
    expect(stdout).toContain('before (step 0)')
    expect(stdout).toContain('its numbers:     npx tiltyard index metrics small-desk')
    expect(stdout).not.toContain('\r')
    expect(stdout).not.toContain('\u001b')
  })

  test('the same seed gives the same metrics, byte for byte; another seed gives others', async () => {
    expect((await tiltyard(['train', recipe])).code).toBe(0)
    expect(metricsOf('small-desk-2')).toBe(metricsOf('small-desk'))
    expect(metricsOf('small-desk-2-warm-start')).toBe(metricsOf('small-desk-warm-start'))
    expect((await tiltyard(['train', recipe, '--seed', '7', '--run', 'other'])).code).toBe(0)
    expect(metricsOf('other')).not.toBe(metricsOf('small-desk'))
  })

  test('F42: Ctrl-C saves, says how to go on, and exits with 130; going on ends at the same metrics', async () => {
    const first = await tiltyard(['train', recipe, '--run', 'stopped'], { INTERRUPT_AT: '2' })
    expect(first.code).toBe(130)
    expect(first.stdout).not.toContain('step 4/4')
    expect(first.stdout).toContain('--resume --run stopped')
    const second = await tiltyard(['train', recipe, '--run', 'stopped', '--resume'])
    expect(second.stderr).toBe('')
    expect(second.code).toBe(0)
    expect(second.stdout).toContain('going on with stopped after step')
    expect(metricsOf('stopped')).toBe(metricsOf('small-desk'))
  })

  test('what was recorded can be listed, shown and evaluated', async () => {
    const listed = await tiltyard(['index', 'ls', '--json'])
    const runs = JSON.parse(listed.stdout) as readonly {
      readonly name: string
      readonly status: string
    }[]
    expect(runs.find(({ name }) => name === 'small-desk')).toMatchObject({
      status: 'completed',
      step: 3,
    })
    const shown = await tiltyard(['index', 'show', 'small-desk', 'train/step-0003/g0/m0/a0'])
    expect(shown.stdout).toMatch(/^user: /m)
    const evaluated = await tiltyard(['eval', recipe, '--run', 'small-desk', '--step', '4'])
    expect(evaluated.stderr).toBe('')
    expect(evaluated.stdout).toMatch(/^held-out success \d+\.\d%$/m)
  })

  test('an unfinished name that is not there is told, with exit code 1', async () => {
    const { code, stderr } = await tiltyard(['train', recipe, '--run', 'no-such', '--resume'])
    expect(stderr).toContain('no-such')
    expect(code).toBe(1)
  })
})
