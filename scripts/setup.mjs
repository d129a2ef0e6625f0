import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { root } from './node-version.mjs'

const tools = join(root, '.tools')

/** pnpm's script, for `process.execPath`; there once `prepare` has run. */
export const pnpm = join(tools, 'node_modules', 'pnpm', 'bin', 'pnpm.mjs')

/**
 * Brings the checkout to the point where its programs run: pnpm, the packages of the lock, the build.
 * Each stage is a line with its seconds; only a stage that fails shows its log. Does nothing twice.
 * `build` says what of turbo to run: `build` brings JavaScript, `types` declarations too.
 */
export function prepare({ build }) {
  const [name, version] = readJson('package.json').packageManager.split('@')
  // The lock decides, as in CI: a script run by a terminal must not stop to ask.
  const env = { ...process.env, CI: 'true', TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' }
  const pathName = Object.keys(env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH'
  env[pathName] = join(tools, 'node_modules', '.bin') + delimiter + (env[pathName] ?? '')

  if (!hasPnpm(version)) {
    const options = ['--no-save', '--no-audit', '--no-fund', '--prefix', tools]
    stage(name, npm(), ['install', ...options, `${name}@${version}`], env)
  }
  stage('packages', pnpm, ['install', '--frozen-lockfile'], env)
  const turbo = join(root, 'node_modules', 'turbo', 'bin', 'turbo')
  stage('build', turbo, ['run', ...build], env)
}

/**
 * Goes on as another program of this repository, in this process: its terminal, its signals and its exit
 * code need no forwarding. The script's own arguments follow `args`.
 */
export async function become(program, args) {
  const file = join(root, program)
  process.argv = [process.execPath, file, ...args, ...process.argv.slice(2)]
  await import(pathToFileURL(file).href)
}

function hasPnpm(version) {
  const manifest = '.tools/node_modules/pnpm/package.json'
  return existsSync(join(root, manifest)) && readJson(manifest).version === version
}

/** npm's script, for `process.execPath`: so it runs without a shell on every platform. */
export function npm() {
  const running = process.env.npm_execpath
  if (running?.endsWith('npm-cli.js')) return running
  const beside = [
    join(process.execPath, '../../lib/node_modules/npm/bin/npm-cli.js'),
    join(process.execPath, '../node_modules/npm/bin/npm-cli.js'),
  ]
  const found = beside.find((file) => existsSync(file))
  if (found !== undefined) return found
  throw expected('npm was not found beside Node. Run this as `npm start` or `npm test`.')
}

function stage(label, script, args, env) {
  process.stderr.write(`${label} … `)
  const began = performance.now()
  const { status, signal, output, error } = spawnSync(process.execPath, [script, ...args], {
    cwd: root,
    env,
    encoding: 'utf8',
    maxBuffer: 256 * 2 ** 20,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0) {
    process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1)} s\n`)
    return
  }
  process.stderr.write(`failed\n${(output ?? []).filter(Boolean).join('')}\n`)
  const how = error?.message ?? (signal === null ? `exit code ${status}` : `signal ${signal}`)
  throw expected(`The stage "${label}" failed (${how}); its log is above.`)
}

/** An error whose message is all that a user needs; `withRecentNode` prints it without a stack. */
function expected(message) {
  return Object.assign(new Error(message), { expected: true })
}

function readJson(file) {
  return JSON.parse(readFileSync(join(root, file), 'utf8'))
}
