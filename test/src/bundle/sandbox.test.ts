/** A bundle whose tasks work in a sandbox, in the real ones. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Bundle, expectScore, loadBundle } from '@tiltyard/bundle'
import type { SandboxProvider } from '@tiltyard/core'
import { bubblewrapSandbox } from '@tiltyard/sandbox-bubblewrap'
import { justBashSandbox } from '@tiltyard/sandbox-just-bash'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { describeWith, program } from '../../support/machine.ts'

const manifest = {
  formatVersion: 1,
  name: 'repair',
  tasks: ['tasks.jsonl'],
  system: 'system.md',
  sandbox: { files: 'work', commandMs: 20_000 },
  steps: [{ name: 'works', use: 'commandExit' }],
}
const task = {
  id: 'greeting',
  turns: [{ prompt: 'greet.sh should print "hello". Mend it.' }],
  expect: {
    command: {
      script: 'bash tests/check.sh',
      files: { 'tests/check.sh': 'test "$(bash greet.sh)" = hello' },
    },
  },
}
const bash = (command: string) => ({ name: 'bash', arguments: { command } })

let folder: string
let bundle: Bundle
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-repair-'))
  await mkdir(join(folder, 'work'))
  await writeFile(join(folder, 'bundle.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'system.md'), 'You mend scripts.\n')
  await writeFile(join(folder, 'tasks.jsonl'), `${JSON.stringify(task)}\n`)
  await writeFile(join(folder, 'work/greet.sh'), 'echo goodbye\n')
  bundle = await loadBundle(folder)
})
afterAll(() => rm(folder, { recursive: true }))

const providers: readonly (readonly [
  string,
  () => SandboxProvider,
  Parameters<typeof describeWith>[0],
])[] = [
  ['just-bash', justBashSandbox, { what: 'nothing', found: 'always there' }],
  ['bubblewrap', bubblewrapSandbox, program('bwrap')],
]

for (const [name, create, needs] of providers)
  describeWith(needs, `a bundle in ${name}`, () => {
    let sandboxes: SandboxProvider
    beforeAll(() => {
      sandboxes = create()
    })
    afterAll(() => sandboxes.close())

    test('files stay from call to call, and the check sees what the agent left', async () => {
      const { calls } = await expectScore(
        bundle,
        'greeting',
        [
          bash('cat greet.sh; ls'),
          bash('echo "echo hello" > greet.sh'),
          bash('bash greet.sh'),
          'Done.',
        ],
        { works: 1 },
        { sandboxes },
      )
      // What the check is made of was not there for the agent to see.
      expect(calls.map(({ result }) => result)).toEqual(['echo goodbye\ngreet.sh', '', 'hello'])
    })

    test('nothing done is a zero, with what the check printed', async () => {
      const { outcome } = await expectScore(
        bundle,
        'greeting',
        ['Done.'],
        { works: 0 },
        { sandboxes },
      )
      expect(outcome.scores['works']).toEqual({ value: 0, note: 'exit code 1' })
    })

    test('one episode’s files are not another’s', async () => {
      const leave = await expectScore(
        bundle,
        'greeting',
        [bash('echo x > mine'), 'Done.'],
        { works: 0 },
        { sandboxes },
      )
      expect(leave.calls[0]!.error).toBeUndefined()
      const look = await expectScore(
        bundle,
        'greeting',
        [bash('ls'), 'Done.'],
        { works: 0 },
        { sandboxes },
      )
      expect(look.calls[0]!.result).toBe('greet.sh')
    })
  })
