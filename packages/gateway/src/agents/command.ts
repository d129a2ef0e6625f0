import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { finished, type Readable, type Writable } from 'node:stream'

import { after, systemClock, TiltyardError, type Clock } from '@tiltyard/core'

import { randomId } from '../keys.ts'
import { orAborted } from '../waiting.ts'
import type { Agent, AgentRun } from './agent.ts'
import { endTree, type ProcessMark } from './process-tree.ts'

/** How an agent's process is started and ended. */
export interface CommandOptions {
  /** A program and its arguments. The task comes as JSON on its standard input. */
  readonly command: readonly [string, ...string[]]
  readonly cwd?: string
  /**
   * All of its environment beside what tells it where the policy is. Nothing is inherited: name what it needs, `PATH` above all.
   */
  readonly env: Readonly<Record<string, string>>
  /** What it gets between being asked to end and being killed, in milliseconds. Default 10,000. */
  readonly graceMs?: number
  /** Bytes of standard output that are kept for verifiers, the last ones. Default 65,536. */
  readonly maxOutputBytes?: number
  readonly clock?: Clock
}

/** Vendors' tracing would send prompts, and the attempt's key, to their hosts. */
const tracingOff = {
  OPENAI_AGENTS_DISABLE_TRACING: '1',
  LANGSMITH_TRACING: 'false',
  LANGCHAIN_TRACING_V2: 'false',
}

/**
 * An agent in a process of its own, in any language: it finds the policy by `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL`.
 * Exit code 0 is its end, another its failure, told with the end of its standard error. The gateway must be served.
 */
export function commandAgent(options: CommandOptions): Agent {
  const { command, cwd, env, graceMs = 10_000, maxOutputBytes = 65_536 } = options
  const { clock = systemClock } = options
  const running = new Map<AgentRun['attempt'], { child: ChildProcess; mark: ProcessMark }>()

  return {
    name: `command ${command.join(' ')}`,

    async run({ task, seed, attempt, context, signal }) {
      signal.throwIfAborted()
      const mark = { variable: 'TILTYARD_PROCESS', value: randomId('p') }
      const [program, ...args] = command
      const child = spawn(program, args, {
        ...(cwd === undefined ? {} : { cwd }),
        // A group of its own, so that all of it can be ended.
        detached: true,
        stdio: ['pipe', 'pipe', 'pipe'],
        env: {
          ...tracingOff,
          ...env,
          OPENAI_BASE_URL: context.model.baseURL,
          OPENAI_API_KEY: context.model.apiKey,
          OPENAI_MODEL: context.model.name,
          TILTYARD_ROLLOUT_ID: attempt.rollout,
          TILTYARD_ATTEMPT: attempt.attempt,
          TILTYARD_SEED: String(seed),
          [mark.variable]: mark.value,
        },
      })
      running.set(attempt, { child, mark })
      const output = tail(child.stdout, maxOutputBytes)
      const complaints = tail(child.stderr, MAX_COMPLAINT_BYTES)
      const complained = () => withoutKey(complaints(), attempt.key)
      child.stdin.on('error', () => {})
      child.stdin.end(JSON.stringify(task))
      await orAborted(exitOf(child, program, clock, complained), signal)
      return { output: output() }
    },

    async stop({ attempt }, end) {
      const started = running.get(attempt)
      running.delete(attempt)
      const grace = end.kind === 'cancelled' ? 0 : graceMs
      if (started !== undefined) await endTree(started.child, started.mark, clock, grace)
    },
  }
}

/** What is kept of a failed command's standard error. */
const MAX_COMPLAINT_BYTES = 1_500
/** How long a failed command's standard error is read on, if something that it left running keeps it open. */
const COMPLAINT_MS = 1_000

/** At the start of a text that is the end of another there may be the end of a key, too. */
function withoutKey(text: string, key: string): string {
  const shown = text.replaceAll(key, '[key]')
  return (Buffer.byteLength(text) < MAX_COMPLAINT_BYTES ? shown : shown.slice(key.length)).trim()
}

function exitOf(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  program: string,
  clock: Clock,
  complaints: () => string,
): Promise<void> {
  const failed = (why: string, cause?: unknown) =>
    new TiltyardError('AGENT', `${program} ${why}`, cause === undefined ? {} : { cause })
  const exited = new Promise<void>((resolve, reject) => {
    child.once('error', (error) => reject(failed('could not be started', error)))
    child.once('exit', (code, signal) => {
      const how = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`
      const fail = () => {
        const said = complaints()
        reject(failed(said === '' ? how : `${how}; the end of its standard error: ${said}`))
      }
      finished(child.stdout, () => {
        if (code === 0) return resolve()
        const callOff = after(clock, COMPLAINT_MS, fail)
        finished(child.stderr, () => {
          callOff()
          fail()
        })
      })
    })
  })
  exited.catch(() => {})
  return exited
}

/** The last bytes of what comes, as text. */
function tail(stream: Readable, maxBytes: number): () => string {
  let kept = Buffer.alloc(0)
  stream.on('data', (piece: Buffer) => {
    kept = Buffer.concat([kept, piece]).subarray(-maxBytes)
  })
  return () => kept.toString('utf8')
}
