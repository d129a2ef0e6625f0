import { randomInt } from 'node:crypto'
import { chown, mkdtemp, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import {
  asError,
  checkOptions,
  StateError,
  type Sandbox,
  type SandboxLimits,
  type SandboxOptions,
  type SandboxProvider,
} from '@tiltyard/core'
import { z } from 'zod'

import { sandboxFiles } from './files.ts'
import { findBubblewrap, runContained } from './run.ts'

export interface BubblewrapOptions {
  /** Where each sandbox gets a folder of its own. Default: the system's folder for temporary files. */
  readonly folder?: string
  /** The program. Default `bwrap`, looked up in the usual folders. */
  readonly program?: string
  /** Folders of this machine that commands see, read-only, beside `/usr` and `/etc/alternatives`. Default none. */
  readonly readOnly?: readonly string[]
}

const optionsSchema = z.strictObject({
  folder: z.string().optional(),
  program: z.string().optional(),
  readOnly: z.array(z.string().startsWith('/')).optional(),
})

/** What holds when a sandbox is opened without limits of its own. */
export const defaultLimits: Required<SandboxLimits> = {
  commandMs: 60_000,
  outputBytes: 1_000_000,
  memoryBytes: 1_073_741_824,
  processes: 64,
  diskBytes: 268_435_456,
}

const limitsSchema = z.strictObject({
  commandMs: z.number().positive().default(defaultLimits.commandMs),
  outputBytes: z.int().positive().default(defaultLimits.outputBytes),
  memoryBytes: z.int().positive().default(defaultLimits.memoryBytes),
  processes: z.int().positive().default(defaultLimits.processes),
  diskBytes: z.int().positive().default(defaultLimits.diskBytes),
})

/**
 * Real processes under Debian's bubblewrap: own user, process, network, mount and host-name space; no network; this machine's
 * programs read-only; a home of its own that lasts from command to command. Linux only.
 */
export function bubblewrapSandbox(options: BubblewrapOptions = {}): SandboxProvider {
  const checked = checkOptions('bubblewrapSandbox', optionsSchema, options)
  const open = new Set<Sandbox>()
  return {
    specVersion: 'sandbox/1',
    name: 'bubblewrap',
    holds: ['commandMs', 'outputBytes', 'memoryBytes', 'processes', 'diskBytes'],
    async open(asked: SandboxOptions = {}) {
      asked.signal?.throwIfAborted()
      const limits = checkOptions('sandbox limits', limitsSchema, asked.limits ?? {})
      const program = await findBubblewrap(checked.program)
      const folder = await mkdtemp(join(checked.folder ?? tmpdir(), 'tiltyard-sandbox-'))
      const place = { home: join(folder, 'home'), temporary: join(folder, 'tmp') }
      await mkdir(place.home)
      await mkdir(place.temporary)
      const user = unprivileged()
      if (user !== undefined) {
        for (const owned of [folder, place.home, place.temporary]) await chown(owned, user, user)
      }
      const closing = new AbortController()
      const running = new Set<Promise<unknown>>()
      const run: Parameters<typeof sandboxFiles>[0] = async (script, how) => {
        if (closing.signal.aborted) throw new StateError('the sandbox is closed')
        const signals = [closing.signal, ...(how.signal === undefined ? [] : [how.signal])]
        const work = runContained({
          program,
          place,
          user,
          readOnly: checked.readOnly ?? [],
          env: asked.env ?? {},
          limits,
          script,
          ...how,
          signal: AbortSignal.any(signals),
        })
        running.add(work)
        try {
          return await work
        } finally {
          running.delete(work)
        }
      }
      let closed: Promise<void> | undefined
      const sandbox: Sandbox = {
        async exec(script, how = {}) {
          const { stdout, stderr, ...result } = await run(script, how)
          const decoder = new TextDecoder()
          return { ...result, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) }
        },
        ...sandboxFiles(run),
        close() {
          closed ??= (async () => {
            asked.signal?.removeEventListener('abort', abort)
            open.delete(sandbox)
            closing.abort(new StateError('the sandbox was closed'))
            await Promise.allSettled(running)
            await rm(folder, { recursive: true, force: true })
          })()
          return closed
        },
      }
      const abort = () => void sandbox.close()
      asked.signal?.addEventListener('abort', abort, { once: true })
      open.add(sandbox)
      if (asked.signal?.aborted === true) {
        await sandbox.close()
        throw asError(asked.signal.reason)
      }
      return sandbox
    },
    async close() {
      await Promise.all([...open].map((sandbox) => sandbox.close()))
    },
  }
}

/** Where systemd keeps ids for services without an account, so that no person has one of them. */
const FIRST_USER = 61_184
const USERS = 4_000

/**
 * The kernel holds no limit on processes for the superuser, whatever space they are in: as such, each sandbox gets a user id of its
 * own, by lot, since other processes of this machine open sandboxes too. Undefined: this process is no superuser.
 */
function unprivileged(): number | undefined {
  return process.getuid?.() === 0 ? FIRST_USER + randomInt(USERS) : undefined
}
