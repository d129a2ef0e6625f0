import { listenForInterrupts } from './exit.ts'
import { main } from './main.ts'

/** How long after the last line something may keep the process alive. */
const LINGER_MS = 1_000

/** Runs the program in this process. */
export async function runProgram(): Promise<void> {
  process.exitCode = await main(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    interrupts: listenForInterrupts(),
  })
  // A recipe's plugin may hold a server or timer open; the program is over all the same.
  setTimeout(() => process.exit(), LINGER_MS).unref()
  if ('unref' in process.stdin) process.stdin.unref()
}
