import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { run } from '../support/terminal.ts'

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
/** Lines of a stack are Node's own then, not vitest's. */
const asFromSource = ['--import', 'tsx', '--conditions=@tiltyard/source']
const desk = fileURLToPath(new URL('../../bundles/desk', import.meta.url))

describe('bundles from the command line', () => {
  test('desk lists its tools, steps and evals', async () => {
    const { code, stdout } = await run(['bundle', 'list', desk, '--eval', 'smoke'])
    expect(code).toBe(0)
    expect(stdout).toContain(
      'tools  find_user_id_by_name_zip, find_user_id_by_email, get_order_status',
    )
    expect(stdout).toContain('steps  answer, calls')
    expect(stdout.match(/^(?:id|status)-\w+-\d+/gm)).toHaveLength(4)
  })

  test('an eval that does not exist names the nearest', async () => {
    const { code, stderr } = await run(['bundle', 'list', desk, '--eval', 'smoek'])
    expect(stderr).toContain('unknown eval "smoek"; did you mean "smoke"?')
    expect(code).toBe(1)
  })

  test('gold replays as data: only JSON on standard output', async () => {
    const { stdout, stderr } = await run([
      'bundle',
      'gold',
      desk,
      '--task',
      'id-name-0000',
      '--json',
    ])
    expect(JSON.parse(stdout)).toMatchObject({
      bundle: 'desk',
      tasks: { 'id-name-0000': { gold_errors: [], changes: [] } },
    })
    expect(stderr).toBe('')
  })

  test('a person plays a task: a mistake is explained, a call answered, the answer scored', async () => {
    const input = [
      'find_user_id_by_name_zip Anna Brown',
      'find_user_id_by_name_zip {"first_name": "Anna", "last_name": "Brown", "zip": "72254"}',
      'Your user id is anna_brown_2016.',
    ].join('\n')
    const { code, stdout } = await run(['play', desk, '--task', 'id-name-0000'], { input })
    expect(stdout).toContain(
      'there should be a JSON object: find_user_id_by_name_zip {"first_name": …',
    )
    expect(stdout).toContain('tool: anna_brown_2016')
    expect(stdout).toContain('answer  1')
    expect(stdout).toContain('reward 1')
    expect(code).toBe(0)
  })

  test('on demand a person sees the prompt as a model is given it, token by token', async () => {
    const input = [':tokens', 'I don’t know.'].join('\n')
    const { code, stdout } = await run(['play', desk, '--task', 'id-name-0000'], { input })
    expect(stdout).toMatch(/<\|im_start\|>·user·/)
    expect(stdout).toMatch(/\(\d{3} tokens, as qwen3_5/)
    expect(stdout).toContain('reward 0')
    expect(code).toBe(0)
  })
})

describe('a bundle of one’s own', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tiltyard-bundle-'))
  })
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  test('new writes one that checks clean', async () => {
    const place = join(folder, 'shop')
    expect((await run(['bundle', 'new', place])).code).toBe(0)
    const { code, stdout, stderr } = await run(['bundle', 'check', place])
    expect(stderr).toBe('')
    expect(stdout).toContain('shop:')
    expect(code).toBe(0)
  })

  test('a tool and a verifier that break are shown at the author’s line', async () => {
    const place = join(folder, 'shop')
    await run(['bundle', 'new', place])
    const module = join(place, 'bundle.ts')
    const text = readFileSync(module, 'utf8')
      .replace('return price', "return price.toFixed('x'.repeat(2) as never).missing.member")
      .replace('calls.length === 1', 'calls[7]!.name.length === 1')
    writeFileSync(module, text)
    const lineOf = (part: string) => text.slice(0, text.indexOf(part)).split('\n').length
    const play = spawnSync(
      process.execPath,
      [...asFromSource, cli, 'play', place, '--task', 'price-of-apple'],
      { input: 'get_price {"good": "apple"}\nIt costs 3.\n', encoding: 'utf8' },
    )
    expect(play.stdout).toContain(
      `tool "get_price" broke at bundle.ts:${lineOf('return price')}: TypeError`,
    )
    expect(play.stdout).toContain(`a verifier broke at bundle.ts:${lineOf('calls[7]')}: TypeError`)
    expect(play.status).toBe(1)
  }, 120_000)

  test('mistakes are told with file and line, with exit code 2', async () => {
    const place = join(folder, 'shop')
    await run(['bundle', 'new', place])
    const manifest = join(place, 'bundle.json')
    const text = readFileSync(manifest, 'utf8').replace('"steps"', '"stepz"')
    writeFileSync(manifest, text)
    const { code, stderr } = await run(['bundle', 'check', place])
    expect(stderr).toMatch(/bundle\.json:\d+.*unknown key "stepz"; did you mean "steps"/)
    expect(code).toBe(2)
  })
})
