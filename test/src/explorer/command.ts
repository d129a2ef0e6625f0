import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'

import { root } from '../../support/workspace.ts'

export const cli = join(root, 'apps/trainer/dist/cli.js')

/** `tiltyard explore`, as it is built. */
export function explore(
  cwd: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  return spawn(process.execPath, [cli, 'explore', ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** Waits for the line that says where. Its output is read on, since a closed pipe would end it. */
export function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text)
      if (found !== null) resolve(found[0])
    })
    child.once('exit', (code) => reject(new Error(`it ended with ${code} and said: ${text}`)))
  })
}
