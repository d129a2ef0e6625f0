import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { root, workspacePackages } from '../../support/workspace.ts'
import { commandsOf, type Block } from './blocks.ts'

/**
 * Why the commands of a block can't be relied on; empty when they can. Either a comment above the block
 * names the test that runs them,
 *
 *     <!-- test: apps/trainer/test/cli.test.ts "evaluates a checkpoint" -->
 *
 * or each is of a kind that this file checks by itself.
 */
export function doubtsAbout({ comment, code }: Block): readonly string[] {
  const text = comment?.lines.join(' ').trim() ?? ''
  if (text.startsWith('test:')) {
    const [, file = '', name = ''] = /^test: (\S+) "(.+)"$/.exec(text) ?? []
    const path = join(root, file)
    if (file === '') return [`expected <!-- test: path "name" -->, found <!-- ${text} -->`]
    if (!existsSync(path)) return [`${file} does not exist`]
    const tests = readFileSync(path, 'utf8')
    const isThere = ["'", '"', '`'].some((quote) => tests.includes(`${quote}${name}${quote}`))
    return isThere ? [] : [`${file} has no test "${name}"`]
  }
  return commandsOf(code)
    .filter((command) => !checks.some((check) => check(command)))
    .map((command) => `no test is named for: ${command}`)
}

type Check = (command: string) => boolean

const ours = new Set(
  workspacePackages()
    .filter(({ manifest }) => manifest.private !== true)
    .map(({ manifest }) => manifest.name),
)

/** Installing packages of ours that exist, and others that the documents' programs are checked with. */
const installs: Check = (command) => {
  const names = /^(?:npm (?:install|i)|pnpm add)((?: (?:-D|--save-dev|[@a-z][\w@./-]*))+)$/.exec(
    command,
  )?.[1]
  return (
    names !== undefined &&
    names
      .trim()
      .split(' ')
      .every((name) => name.startsWith('-') || isKnown(name))
  )
}

const dependencies = new Set(
  ['package.json', 'test/package.json'].flatMap((file) =>
    Object.keys(readManifest(file).devDependencies),
  ),
)

function isKnown(name: string): boolean {
  return ours.has(name) || (dependencies.has(name) && !name.startsWith('@tiltyard/'))
}

/** A script of the root's package.json, its options left to it. */
const scripts: Check = (command) => {
  const script = /^(?:pnpm|npm run|npm(?= (?:start|test)\b)) ([\w:-]+)( |$)/.exec(command)?.[1]
  return script !== undefined && script in readManifest('package.json').scripts
}

const clones: Check = (command) => /^(?:git clone|cd) \S+$/.test(command)

const checks: readonly Check[] = [installs, scripts, clones]

interface RootManifest {
  readonly scripts: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

function readManifest(file: string): RootManifest {
  return JSON.parse(readFileSync(join(root, file), 'utf8')) as RootManifest
}
