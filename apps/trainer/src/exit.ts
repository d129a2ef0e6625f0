// No imports: what an old Node is told must not need a package.

/** What a process says with its exit code. */
export const exitCodes = { success: 0, failure: 1, usage: 2, interrupted: 130 } as const

/** A process that speaks to a person: two streams, an environment, and signals. Tests bring their own. */
export interface Terminal {
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly interrupts: Interrupts
}

/** Ctrl-C and its relatives: `soft` fires at the first, `hard` at the second. */
export interface Interrupts {
  readonly soft: AbortSignal
  readonly hard: AbortSignal
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** npm passes a terminal's Ctrl-C on to its child, which has it already: two signals so close are one. */
const SAME_PRESS_MS = 300

/** Listens to the process until the program ends. The third signal kills, whatever hangs. */
export function listenForInterrupts(): Interrupts {
  const soft = new AbortController()
  const hard = new AbortController()
  let last = Number.NEGATIVE_INFINITY
  for (const signal of signals) {
    process.on(signal, () => {
      const now = performance.now()
      if (now - last < SAME_PRESS_MS) return
      last = now
      if (!soft.signal.aborted) soft.abort(new Error(`stopped by ${signal}`))
      else if (!hard.signal.aborted) hard.abort(new Error(`stopped at once by ${signal}`))
      else process.exit(exitCodes.interrupted)
    })
  }
  return { soft: soft.signal, hard: hard.signal }
}

/** Resolves at the first interrupt. */
export async function untilInterrupted({ soft }: Interrupts): Promise<void> {
  if (!soft.aborted)
    await new Promise((resolve) => soft.addEventListener('abort', resolve, { once: true }))
}
