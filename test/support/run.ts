import { spawn } from 'node:child_process'

export interface RunOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Milliseconds until the program is killed. */
  readonly timeout?: number
}

export interface RunResult {
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end, whatever its exit code. */
export function run(
  command: string,
  args: readonly string[],
  { cwd, env = {}, timeout = 600_000 }: RunOptions,
): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout,
      killSignal: 'SIGKILL',
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', reject)
    child.once('close', (code) => {
      resolve({ code: code ?? undefined, stdout, stderr })
    })
  })
}

/** Runs a program that must succeed; its whole output is in the error otherwise. */
export async function runOk(
  command: string,
  args: readonly string[],
  options: RunOptions,
): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, options)
  if (code === 0) return stdout
  const line = [command, ...args].join(' ')
  throw new Error(`exit code ${code ?? 'none'} of: ${line}\n${stdout}${stderr}`)
}
