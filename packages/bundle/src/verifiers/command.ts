import { StateError } from '@tiltyard/core'
import { z } from 'zod'

import type { Verify } from '../author/verifier.ts'

export const commandSchema = z.strictObject({
  /** A bash script; exit code 0 is a 1. */
  script: z.string().min(1),
  /** Texts by path, written into the sandbox once the agent is done: what it couldn't see. */
  files: z.record(z.string(), z.string()).optional(),
})

/** Longest part of the command's output that the score's note shows, in UTF-16 units. */
const MAX_NOTE_CHARS = 500

/** Runs `expect.command` in the episode's sandbox after its end. A command that a limit stops is a 0. */
export const commandExit: Verify = async ({ task, sandbox, signal }) => {
  if (sandbox === undefined) throw new StateError('commandExit needs a bundle with a sandbox')
  const { script, files = {} } = commandSchema.parse(task.expect['command'])
  for (const [path, text] of Object.entries(files)) await sandbox.write(path, text)
  const { exitCode, stdout, stderr, stopped } = await sandbox.exec(script, { signal })
  if (stopped === 'aborted') throw signal.reason
  const passed = exitCode === 0 && stopped === undefined
  const output = `${stdout}${stderr}`.trim().slice(-MAX_NOTE_CHARS)
  const how = stopped === undefined ? `exit code ${exitCode}` : `stopped: ${stopped} limit`
  return { value: passed ? 1 : 0, note: output === '' ? how : `${how}: ${output}` }
}
