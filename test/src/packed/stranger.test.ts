import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'

import { run, runOk } from '../../support/run.ts'
import { isOurs, root, workspacePackages } from '../../support/workspace.ts'

const tarballs = inject('tarballs')
const packages = workspacePackages()

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tiltyard-strangers-'))
})
afterAll(async () => {
  await rm(home, { recursive: true })
})

describe.each(Object.keys(tarballs).filter(isWritten))('%s in a stranger’s project', (name) => {
  let folder: string
  beforeAll(async () => {
    folder = join(home, name.replace('/', '+'))
    await mkdir(folder)
    await install(folder, name)
  })

  test('brings what it depends on and nothing else of ours', async () => {
    const modules = join(folder, 'node_modules')
    const scoped = await readdir(join(modules, '@tiltyard'))
    const found = scoped.map((entry) => `@tiltyard/${entry}`)
    if ((await readdir(modules)).includes('tiltyard')) found.push('tiltyard')
    expect(found.toSorted()).toEqual([...closure(name)].toSorted())
  })

  test('type-checks without skipLibCheck', async () => {
    await writeFile(join(folder, 'index.ts'), `export * from '${name}'\n`)
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          target: 'ES2023',
          module: 'NodeNext',
          strict: true,
          skipLibCheck: false,
          noEmit: true,
          types: ['node'],
        },
        files: ['index.ts'],
      }),
    )
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { code, stdout } = await run(process.execPath, [tsc, '-p', folder], { cwd: folder })
    expect(stdout).toBe('')
    expect(code).toBe(0)
  })

  test('imports, and its factory has the name that the convention gives it', async () => {
    const program = `import * as api from '${name}'
      console.log(Object.keys(api).filter((key) => typeof api[key] === 'function').join())`
    const args = ['--input-type=module', '--eval', program]
    const functions = (await runOk(process.execPath, args, { cwd: folder })).trim().split(',')
    expect(functions).toContainEqual(expect.stringMatching(factoryPattern(name)))
  })

  test.runIf(name === 'tiltyard')(
    'names the package that a run index in a bucket takes, and finds it once it is there',
    async () => {
      const program = join(folder, 'node_modules/tiltyard/dist/cli.js')
      // Whether it is an addressing is for the adapter to say.
      const args = [program, 'index', 'ls', '--index', 's3://bucket/runs?addressing=dns']
      // pnpm shows the workspace's own packages to what it runs.
      const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's', NODE_PATH: undefined }
      const asked = await run(process.execPath, args, { cwd: folder, env })
      expect(asked.stderr).toContain('try: npm install @tiltyard/run-index-s3')
      expect(asked.code).toBe(2)
      const adapter = closure('@tiltyard/run-index-s3')
      await npmInstall(folder, [...adapter, ...closure(name)].map(tarballOf))
      const found = await run(process.execPath, args, { cwd: folder, env })
      expect(found.stderr).toContain('s3RunIndex: addressing')
    },
  )
})

async function install(folder: string, name: string): Promise<void> {
  const manifest = { name: 'stranger', private: true, type: 'module' }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  const theirs = await pinned(['zod', '@types/node'])
  await npmInstall(folder, [...[...closure(name)].map(tarballOf), ...theirs])
}

async function npmInstall(folder: string, what: readonly string[]): Promise<void> {
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await runOk('npm', ['install', ...options, ...what], { cwd: folder })
}

function tarballOf(name: string): string {
  return tarballs[name] ?? name
}

/** The package and those of ours that it depends on, directly or not. */
function closure(name: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(name)) return found
  found.add(name)
  const manifest = packages.find((candidate) => candidate.manifest.name === name)?.manifest
  const { dependencies, peerDependencies } = manifest ?? {}
  for (const member of Object.keys({ ...dependencies, ...peerDependencies })) {
    if (isOurs(member)) closure(member, found)
  }
  return found
}

/** Pinned to the versions of the workspace, so that a release elsewhere changes no result here. */
async function pinned(names: readonly string[]): Promise<readonly string[]> {
  const catalog = await readFile(join(root, 'pnpm-workspace.yaml'), 'utf8')
  return names.map((name) => {
    const version = new RegExp(`^  '?${name}'?: (.+)$`, 'm').exec(catalog)?.[1]
    if (version === undefined) throw new Error(`${name} is not in the catalog.`)
    return `${name}@${version}`
  })
}

/** False for a skeleton, whose index exports nothing yet. */
function isWritten(name: string): boolean {
  const { dir } = packages.find(({ manifest }) => manifest.name === name) ?? {}
  return (
    dir !== undefined &&
    !/^export \{\}\s*$/.test(readFileSync(join(root, dir, 'src/index.ts'), 'utf8'))
  )
}

/**
 * What the convention calls the main export: `run-index-fs` offers `fsRunIndex`, `renderer-qwen` a
 * `qwen…Renderer`. A package that is not an adapter offers functions of any name.
 */
function factoryPattern(name: string): RegExp {
  const [, kind, what] = /^@tiltyard\/(backend|renderer|run-index|sandbox)-(.+)$/.exec(name) ?? []
  if (kind === undefined || what === undefined) return /./
  return new RegExp(`^${camel(what)}.*${camel(`-${kind}`)}$`)
}

/** `just-bash` → `justBash`, `-run-index` → `RunIndex`. */
function camel(text: string): string {
  return text.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}
