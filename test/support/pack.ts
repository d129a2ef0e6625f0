import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { TestProject } from 'vitest/node'

import { runOk } from './run.ts'
import { root, workspacePackages } from './workspace.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** What `npm publish` would send: package name → tarball, made once per run from the build. */
    tarballs: Record<string, string>
  }
}

let folder: string

export async function setup(project: TestProject): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-packed-'))
  const published = workspacePackages().filter(({ manifest }) => manifest.private !== true)
  const filters = published.flatMap(({ manifest }) => ['--filter', manifest.name])
  const pnpm = join(root, '.tools/node_modules/pnpm/bin/pnpm.mjs')
  const args = [pnpm, '--recursive', ...filters, 'pack', '--json', '--pack-destination', folder]
  const packed = JSON.parse(await runOk(process.execPath, args, { cwd: root })) as readonly {
    readonly name: string
    readonly filename: string
  }[]
  project.provide(
    'tarballs',
    Object.fromEntries(packed.map(({ name, filename }) => [name, filename])),
  )
}

export async function teardown(): Promise<void> {
  await rm(folder, { recursive: true })
}
