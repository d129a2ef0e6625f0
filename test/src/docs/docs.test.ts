import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { run } from '../../support/run.ts'
import { root, workspacePackages } from '../../support/workspace.ts'
import { blocksOf, linksOf, programsOf } from './blocks.ts'
import { doubtsAbout } from './commands.ts'

const documents = documentPaths().map((path) => {
  const markdown = readFileSync(join(root, path), 'utf8')
  const blocks = blocksOf(markdown)
  const folder = path.replaceAll('/', '+')
  return { path, markdown, blocks, folder, programs: programsOf(blocks) }
})
const programs = documents.flatMap(({ path, folder, programs: own }) =>
  own.map((program) => ({ ...program, title: `${path}:${program.line}`, path, folder })),
)

/** Inside the project `test`, so that imports find the built packages and the libraries installed there. */
let workshop: string
/** The compiler's faults, then the files that it read. */
let said: readonly string[]

beforeAll(async () => {
  const parent = join(root, 'test/temp')
  await mkdir(parent, { recursive: true })
  workshop = await mkdtemp(join(parent, 'docs-'))
  for (const { folder, name, source } of programs) {
    const file = join(workshop, folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, source)
  }
  said = await typeCheck()
})
afterAll(async () => {
  await rm(workshop, { recursive: true })
})

describe.each(documents)('$path', ({ path, markdown, blocks }) => {
  test('names code blocks by the languages that are checked: ts, sh', () => {
    const unchecked = new Set([
      '',
      'bash',
      'console',
      'javascript',
      'js',
      'shell',
      'tsx',
      'typescript',
    ])
    const found = blocks.filter(({ language }) => unchecked.has(language))
    expect(found.map(({ language, code }) => `${path}:${code.start - 1} "${language}"`)).toEqual([])
  })

  test('shows commands that a test runs', () => {
    const shell = blocks.filter(({ language }) => language === 'sh')
    const doubts = shell.flatMap((block) =>
      doubtsAbout(block).map((doubt) => `${path}:${block.code.start} ${doubt}`),
    )
    expect(doubts).toEqual([])
  })

  test('links to files that exist', () => {
    const missing = linksOf(markdown)
      .filter((link) => !/^([a-z]+:|#)/.test(link))
      .filter((link) => !existsSync(join(root, dirname(path), link.replace(/#.*$/, ''))))
    expect(missing).toEqual([])
  })
})

test('the compiler reads every program, and has nothing to say of anything else', () => {
  const files = programs.map(({ folder, name }) => `${folder}/${name}`)
  expect(new Set(files).size).toBe(files.length)
  expect(files.filter((file) => !said.some((line) => line.endsWith(`/${file}`)))).toEqual([])
  const faults = said.filter((line) => /\berror TS\d+: /.test(line))
  expect(faults.filter((line) => !files.some((file) => line.startsWith(`${file}(`)))).toEqual([])
})

test.each(programs)('$title type-checks against the built packages', ({ folder, name }) => {
  expect(said.filter((line) => line.startsWith(`${folder}/${name}(`))).toEqual([])
})

test.each(programs.filter(({ runs }) => runs))('$title runs', async ({ folder, name }) => {
  const args = ['--import', 'tsx', name]
  const { code, stderr } = await run(process.execPath, args, {
    cwd: join(workshop, folder),
    env: { TMPDIR: workshop },
  })
  expect(stderr).toBe('')
  expect(code).toBe(0)
})

/** One run of the compiler over all programs; a fault's line begins with `<folder>/<name>(<line>,…`. */
async function typeCheck(): Promise<readonly string[]> {
  const base = JSON.parse(readFileSync(join(root, 'tsconfig.base.json'), 'utf8')) as {
    readonly compilerOptions: object
  }
  const compilerOptions = { ...base.compilerOptions, customConditions: [] }
  await writeFile(
    join(workshop, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['**/*.ts'] }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const args = [tsc, '--pretty', 'false', '--listFiles']
  const { stdout } = await run(process.execPath, args, { cwd: workshop })
  return stdout.split('\n')
}

function documentPaths(): readonly string[] {
  const folders = ['', ...workspacePackages().map(({ dir }) => `${dir}/`), 'test/']
  const readmes = folders.map((folder) => `${folder}README.md`)
  const guides = folders.flatMap((folder) => {
    const path = join(root, folder, 'docs')
    if (!existsSync(path)) return []
    const files = readdirSync(path, { recursive: true, encoding: 'utf8' })
    return files.filter((file) => file.endsWith('.md')).map((file) => `${folder}docs/${file}`)
  })
  return ['CONTRIBUTING.md', ...readmes, ...guides].filter((path) => existsSync(join(root, path)))
}
