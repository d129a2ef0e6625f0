import type { Contract } from './contract.ts'

/** Bounds of a sandbox. Absent: the provider's default, which its documentation states. */
export interface SandboxLimits {
  /** Wall time of one command, in milliseconds. */
  readonly commandMs?: number
  /** Standard output and error of one command, each, in bytes. What is beyond is dropped and marked. */
  readonly outputBytes?: number
  /** Memory of all processes together, in bytes. */
  readonly memoryBytes?: number
  /** Processes alive at once. */
  readonly processes?: number
  /** All that is written, in bytes. */
  readonly diskBytes?: number
}

export interface SandboxOptions {
  /** Aborted: the sandbox is closed, and what runs in it killed. */
  readonly signal?: AbortSignal
  readonly limits?: SandboxLimits
  /** Environment variables. Nothing of this process' environment is inherited. */
  readonly env?: Readonly<Record<string, string>>
}

export interface ExecOptions {
  /** Given to the command as standard input. Default: none. */
  readonly stdin?: string
  /** Below the sandbox's own limit. */
  readonly commandMs?: number
  readonly signal?: AbortSignal
}

export interface ExecResult {
  /** 128 + signal number when a signal ended it. */
  readonly exitCode: number
  /** UTF-8; bytes that are none become U+FFFD. */
  readonly stdout: string
  readonly stderr: string
  /** Bytes that the output limit dropped from standard output and error together. */
  readonly droppedBytes: number
  /** The limit that ended it, if one did. */
  readonly stopped?: 'time' | 'memory' | 'processes' | 'disk' | 'aborted'
  readonly ms: number
}

/**
 * An isolated machine or folder in which an agent's commands run: no network, no file or process of this machine in reach.
 * One episode has one sandbox.
 */
export interface Sandbox {
  /**
   * Runs a bash script in the working directory, which lasts, with its files, from command to command; `cd` ends with the
   * script. When it resolves, nothing that the script started still runs. Rejects only when the sandbox itself fails.
   */
  exec(script: string, options?: ExecOptions): Promise<ExecResult>
  /** Writes a file, making its folders. The path is relative to the working directory. @throws ConfigError for one that leaves it. */
  write(path: string, data: string | Uint8Array): Promise<void>
  /** At most `maxBytes` of a file. @throws NotFoundError when there is none; ConfigError for a path that leaves the working directory. */
  read(path: string, maxBytes: number): Promise<Uint8Array>
  /** Kills all that runs and deletes all that was written. Idempotent. */
  close(): Promise<void>
}

/** Opens sandboxes. Nothing starts before the first `open`. */
export interface SandboxProvider extends Contract<'sandbox/1'> {
  readonly name: string
  /** Which limits it really holds; a limit that is asked for and not held is refused by `open`. */
  readonly holds: readonly (keyof SandboxLimits)[]
  /** A fresh sandbox, empty, isolated from every other. @throws UnsupportedError naming the limit or the missing program. */
  open(options?: SandboxOptions): Promise<Sandbox>
  /** Closes the sandboxes that are open. Idempotent. */
  close(): Promise<void>
}
