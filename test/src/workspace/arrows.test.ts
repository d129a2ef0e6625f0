import { isBuiltin } from 'node:module'
import { join, relative, resolve } from 'node:path'

import { describe, expect, test } from 'vitest'

import { isOurs, root, workspacePackages } from '../../support/workspace.ts'
import { allowedFrom, mayUseNode } from './arrows.ts'
import { importsBelow, importsOf, packageOf } from './imports.ts'

const all = workspacePackages()
const packages = all.filter(({ dir }) => dir.startsWith('packages/'))

describe.each(packages)('$dir', ({ dir, manifest }) => {
  const name = dir.replace('packages/', '')
  const allowed = allowedFrom(name).map((target) => `@tiltyard/${target}`)
  const imports = importsBelow(join(root, dir, 'src'))
  const ships = {
    ...manifest.dependencies,
    ...manifest.peerDependencies,
    ...manifest.optionalDependencies,
  }

  test('depends on those of ours that its arrows allow, and on testkit for its tests alone', () => {
    expect(Object.keys(ships).filter(isOurs)).toSatisfy(isWithin(allowed))
    expect(Object.keys(manifest.devDependencies ?? {}).filter(isOurs)).toSatisfy(
      isWithin([...allowed, '@tiltyard/testkit']),
    )
  })

  test('imports nothing but its own files, Node and what its package.json ships', () => {
    const strangers = imports.filter(({ file, specifier }) => {
      if (specifier.startsWith('.')) {
        return relative(join(root, dir, 'src'), resolve(file, '..', specifier)).startsWith('..')
      }
      if (isBuiltin(specifier)) return !mayUseNode(name)
      return !(packageOf(specifier) in ships)
    })
    expect(strangers).toEqual([])
  })
})

test('core depends on zod and nothing else', () => {
  const core = packages.find(({ dir }) => dir === 'packages/core')?.manifest
  expect(core?.dependencies ?? {}).toEqual({})
  expect(Object.keys(core?.peerDependencies ?? {})).toEqual(['zod'])
})

test('whatever of ours a package depends on follows the workspace', () => {
  const ranges = all.flatMap(({ manifest }) =>
    Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(([target]) =>
      isOurs(target),
    ),
  )
  expect(ranges.filter(([, range]) => range !== 'workspace:^')).toEqual([])
})

test('imports are found in every form and not in comments', () => {
  const source = `
    import type { A } from 'a'
    import {
      b,
    } from "b/sub"
    import 'c'
    export * from './d.ts'
    /** import { x } from 'documented' */
    // import 'commented'
    const e = await import('e')
  `
  expect(importsOf(source)).toEqual(['a', 'b/sub', 'c', './d.ts', 'e'])
})

function isWithin(allowed: readonly string[]) {
  return (names: readonly string[]): boolean => names.every((name) => allowed.includes(name))
}
