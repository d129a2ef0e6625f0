import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export interface WorkspacePackage {
  /** Path from the root, such as `packages/core`. */
  readonly dir: string
  readonly manifest: Manifest
}

/** Everything in `packages` and `apps`. */
export function workspacePackages(): readonly WorkspacePackage[] {
  return ['packages', 'apps'].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => {
      const dir = `${parent}/${name}`
      const text = readFileSync(join(root, dir, 'package.json'), 'utf8')
      return { dir, manifest: JSON.parse(text) as Manifest }
    }),
  )
}

export function isOurs(name: string): boolean {
  return name === 'tiltyard' || name.startsWith('@tiltyard/')
}
