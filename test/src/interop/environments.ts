import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, existsSync } from 'node:fs'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir, userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import type { Requirement } from '../../support/machine.ts'

const run = promisify(execFile)
const here = fileURLToPath(new URL('python', import.meta.url))

/** A set of Python packages, every version fixed, in a virtual environment that is made once and kept. */
export interface Environment {
  /** Its packages lie in `python/<name>.txt`. */
  readonly name: string
  /** Oldest 3.x that they run on. */
  readonly minor: number
  /** Packages that are not its own are taken from this one. */
  readonly over?: Environment
}

export const sdk = (version: string): Environment => ({ name: `sdk-${version}`, minor: 11 })
/** SkyRL's server on JAX, with PyTorch and the SDK 0.25.0 beside it: 6 GB. */
export const skyrl: Environment = { name: 'skyrl', minor: 12 }
/** The cookbook, with the SDK 0.38.0. */
export const cookbook: Environment = { name: 'cookbook', minor: 12, over: skyrl }

/** OpenEnv's official client and server: before June 2026 under another name, and now. */
export const OPENENV_VERSIONS = ['0.2.3', '0.10.0'] as const

export const openenv = (version: (typeof OPENENV_VERSIONS)[number]): Environment =>
  version === '0.10.0'
    ? { name: `openenv-${version}`, minor: 11 }
    : { name: `openenv-${version}`, minor: 11, over: openenv('0.10.0') }

/** Oldest and newest release of the SDK that are held to work. */
export const SDK_VERSIONS = ['0.25.0', '0.38.0'] as const

const NEWEST_MINOR = 14

/** A Python at least as new: on the PATH, or one that pyenv has. Debian 12 has 3.11. */
export function python(minor: number): Requirement {
  const minors = Array.from({ length: NEWEST_MINOR - minor + 1 }, (_, index) => minor + index)
  const pyenv = process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv')
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((it) => !it.startsWith(pyenv))
  const candidates = minors.flatMap((each) => [
    ...folders.map((folder) => join(folder, `python3.${each}`)),
    ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((patch) =>
      join(pyenv, 'versions', `3.${each}.${patch}`, 'bin', 'python3'),
    ),
  ])
  return { what: `Python 3.${minor} or newer`, found: candidates.find(exists) }
}

function exists(file: string): boolean {
  try {
    accessSync(file)
    return true
  } catch {
    return false
  }
}

/** The environment's `python`, which is installed first where it isn't yet. Takes minutes then. */
export async function prepare(environment: Environment): Promise<string> {
  const base = environment.over === undefined ? undefined : await prepare(environment.over)
  const list = await readFile(join(here, `${environment.name}.txt`), 'utf8')
  const interpreter = python(environment.minor).found
  if (interpreter === undefined)
    throw new Error(`${environment.name} needs Python 3.${environment.minor}`)
  const key = createHash('sha256').update([list, interpreter, base].join('\n')).digest('hex')
  const folder = join(
    tmpdir(),
    `tiltyard-python-${userInfo().uid}`,
    `${environment.name}-${key.slice(0, 12)}`,
  )
  const bin = join(folder, 'bin', 'python')
  const ready = join(folder, 'ready')
  if (existsSync(ready)) return bin
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await run(interpreter, ['-m', 'venv', folder])
  if (base !== undefined)
    await writeFile(
      join(await packagesOf(folder), 'base.pth'),
      await packagesOf(join(base, '../..')),
    )
  await run(
    bin,
    [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--no-deps',
      '--no-compile',
      '-r',
      join(here, `${environment.name}.txt`),
    ],
    { maxBuffer: 64 * 1024 * 1024 },
  )
  await writeFile(ready, '')
  return bin
}

/** Where an environment has its packages. */
async function packagesOf(folder: string): Promise<string> {
  const [name] = await readdir(join(folder, 'lib'))
  return join(folder, 'lib', name!, 'site-packages')
}
