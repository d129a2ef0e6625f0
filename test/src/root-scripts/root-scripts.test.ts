import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { describeWith, fromEnvironment } from '../../support/machine.ts'
import { run } from '../../support/run.ts'
import { root } from '../../support/workspace.ts'

/** A checkout in which pnpm, turbo and the trainer only say how they were called. */
let checkout: string
beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'tiltyard-checkout-'))
  await cp(join(root, 'scripts'), join(checkout, 'scripts'), { recursive: true })
  await write('package.json', {
    type: 'module',
    packageManager: 'pnpm@1.2.3',
    engines: { node: '>=20.19' },
  })
  await write('.tools/node_modules/pnpm/package.json', { version: '1.2.3' })
  await write('.tools/node_modules/pnpm/bin/pnpm.mjs', tool('pnpm'))
  await write('node_modules/turbo/bin/turbo', tool('turbo'))
  await write('apps/trainer/dist/cli.js', 'console.log(JSON.stringify(process.argv.slice(2)))')
})
afterEach(async () => {
  await rm(checkout, { recursive: true })
})

describe('npm start', () => {
  test('prepares with the frozen lock, builds, and trains with the options that it was given', async () => {
    const { code, stdout, stderr } = await node('scripts/start.mjs', '--resume', '--steps', '3')
    expect(await readFile(join(checkout, 'calls'), 'utf8')).toBe(
      'pnpm install --frozen-lockfile\nturbo run build --filter=tiltyard...\n',
    )
    const recipe = 'apps/trainer/recipes/desk.ts'
    expect(JSON.parse(stdout)).toEqual(['train', recipe, '--resume', '--steps', '3'])
    expect(stderr).toMatch(/^packages … \d+\.\d s\nbuild … \d+\.\d s\n$/)
    expect(code).toBe(0)
  })

  test('installs the pinned pnpm into .tools when it is not there', async () => {
    await write('.tools/node_modules/pnpm/package.json', { version: '1.0.0' })
    await write('npm-cli.js', tool('npm'))
    await run(process.execPath, ['scripts/start.mjs'], {
      cwd: checkout,
      env: { npm_execpath: join(checkout, 'npm-cli.js') },
    })
    const [first] = (await readFile(join(checkout, 'calls'), 'utf8')).split('\n')
    expect(first).toMatch(/^npm install .*--prefix \S+\.tools pnpm@1\.2\.3$/)
  })

  test('ends with the exit code of the trainer', async () => {
    await write('apps/trainer/dist/cli.js', 'process.exit(7)')
    expect((await node('scripts/start.mjs')).code).toBe(7)
  })

  test('hands a signal to the trainer once', async () => {
    await write(
      'apps/trainer/dist/cli.js',
      `let count = 0
       process.on('SIGINT', () => {
         count += 1
         setTimeout(() => process.exit(count), 200)
       })
       setInterval(() => {}, 1000)
       console.log('ready')`,
    )
    const child = spawn(process.execPath, ['scripts/start.mjs'], { cwd: checkout, detached: true })
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.stdout.once('data', () => {
      // As a terminal does it: to the whole foreground group.
      process.kill(-(child.pid ?? 0), 'SIGINT')
    })
    expect(await exit).toBe(1)
  })

  test('shows the whole log of a stage that fails, and goes no further', async () => {
    await write(
      'node_modules/turbo/bin/turbo',
      "console.log('core: no such type'); process.exit(2)",
    )
    const { code, stdout, stderr } = await node('scripts/start.mjs')
    expect(stderr).toContain('build … failed\ncore: no such type\n')
    expect(stderr).toContain('The stage "build" failed (exit code 2); its log is above.\n')
    expect(stdout).toBe('')
    expect(code).toBe(1)
  })
})

describe('npm test', () => {
  test('builds all packages and passes its options on to vitest', async () => {
    await write(
      'node_modules/vitest/vitest.mjs',
      'console.log(JSON.stringify(process.argv.slice(2)))',
    )
    const { stdout } = await node('scripts/test.mjs', '--project', 'unit')
    expect(JSON.parse(stdout)).toEqual(['run', '--project', 'unit'])
    expect(await readFile(join(checkout, 'calls'), 'utf8')).toBe(
      'pnpm install --frozen-lockfile\nturbo run types\n',
    )
  })
})

describe.each(['scripts/start.mjs', 'scripts/test.mjs'])('%s on an old Node', (script) => {
  const advice = 'Install a newer one (https://nodejs.org, or your version manager'

  test('says what it needs and what to do, and touches nothing', async () => {
    await write(
      'old.cjs',
      "Object.defineProperty(process, 'versions', { value: { node: '20.18.3' } })",
    )
    const { code, stderr } = await node('--require', './old.cjs', script)
    expect(stderr).toContain('Tiltyard needs Node 20.19 or newer; this is Node 20.18.3.')
    expect(stderr).toContain(advice)
    expect(code).toBe(1)
    await expect(readFile(join(checkout, 'calls'))).rejects.toThrow('ENOENT')
  })

  describeWith(fromEnvironment('TILTYARD_OLD_NODE'), 'that is really one', (oldNode) => {
    test('is understood by it', async () => {
      const { code, stderr } = await run(oldNode, [script], { cwd: checkout })
      expect(stderr).toContain(advice)
      expect(code).toBe(1)
    })
  })
})

function node(...args: readonly string[]) {
  return run(process.execPath, args, { cwd: checkout })
}

/** A program that adds its name and arguments to the file `calls`. */
function tool(name: string): string {
  return `import { appendFileSync } from 'node:fs'
    appendFileSync('calls', ['${name}', ...process.argv.slice(2)].join(' ') + '\\n')`
}

async function write(path: string, content: string | object): Promise<void> {
  const file = join(checkout, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
}
