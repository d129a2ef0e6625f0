// Publishes every package to a registry on this machine and installs them from there, as the last check
// before a release. Works on a clone of HEAD, so the checkout keeps its versions and changesets.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

import { root } from './node-version.mjs'
import { npm, pnpm } from './setup.mjs'

const verdaccio = { version: '6.8.0', overrides: { 'node-fetch': '2.7.0' } }

const folder = mkdtempSync(join(tmpdir(), 'tiltyard-rehearsal-'))
const port = await freePort()
const registry = `http://127.0.0.1:${port}/`
let server
try {
  server = await startRegistry()
  const versions = publish()
  for (const name of Object.keys(versions)) install(name, versions)
  console.log(
    `Published and installed: ${Object.entries(versions)
      .map((it) => it.join('@'))
      .join(', ')}`,
  )
} finally {
  server?.kill()
  rmSync(folder, { recursive: true, force: true })
}

async function startRegistry() {
  const home = join(root, '.tools/verdaccio')
  mkdirSync(home, { recursive: true })
  const manifest = {
    private: true,
    dependencies: { verdaccio: verdaccio.version },
    overrides: verdaccio.overrides,
  }
  writeFileSync(join(home, 'package.json'), JSON.stringify(manifest))
  node(npm(), ['install', '--no-audit', '--no-fund', '--loglevel=error'], home)

  // No uplink: what is not ours must never be looked for here.
  const config = {
    storage: join(folder, 'storage'),
    uplinks: {},
    packages: { '**': { access: '$all', publish: '$anonymous' } },
    log: { type: 'stdout', level: 'warn' },
  }
  writeFileSync(join(folder, 'verdaccio.yaml'), JSON.stringify(config))
  const program = join(home, 'node_modules/verdaccio/bin/verdaccio')
  const child = spawn(
    process.execPath,
    [program, '--config', join(folder, 'verdaccio.yaml'), '--listen', `127.0.0.1:${port}`],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  for (let tries = 0; tries < 100; tries++) {
    const answer = await fetch(`${registry}-/ping`).catch(() => undefined)
    if (answer?.ok) return child
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  child.kill()
  throw new Error('The local registry did not answer within 10 s.')
}

/** Versions, builds and publishes a clone of HEAD; gives what was published: name → version. */
function publish() {
  const clone = join(folder, 'clone')
  run('git', ['clone', '--quiet', root, clone], folder)
  node(pnpm, ['install', '--frozen-lockfile', '--silent'], clone)
  node(pnpm, ['changeset', 'version'], clone)
  node(pnpm, ['build'], clone)
  // Only the local registry, and a user's settings with no token for any other.
  const settings = `registry=${registry}\n//127.0.0.1:${port}/:_authToken=rehearsal\n`
  const userconfig = join(folder, 'npmrc')
  writeFileSync(userconfig, settings)
  writeFileSync(join(clone, '.npmrc'), settings)
  node(pnpm, ['changeset', 'publish', '--no-git-tag'], clone, {
    npm_config_registry: registry,
    npm_config_userconfig: userconfig,
  })
  const manifests = ['packages', 'apps'].flatMap((parent) =>
    readdirSync(join(clone, parent)).map((name) =>
      JSON.parse(readFileSync(join(clone, parent, name, 'package.json'), 'utf8')),
    ),
  )
  const published = manifests.filter((manifest) => !manifest.private)
  return Object.fromEntries(published.map(({ name, version }) => [name, version]))
}

/** In a folder of its own, by its tarball's address, so that an unscoped name needs no other registry. */
function install(name, versions) {
  const consumer = join(folder, 'consumers', name)
  mkdirSync(consumer, { recursive: true })
  writeFileSync(join(consumer, 'package.json'), '{ "private": true, "type": "module" }')
  writeFileSync(join(consumer, '.npmrc'), `@tiltyard:registry=${registry}\n`)
  const tarball = `${registry}${name}/-/${name.split('/').at(-1)}-${versions[name]}.tgz`
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  node(npm(), ['install', ...options, tarball], consumer)
  node('--input-type=module', ['--eval', `await import('${name}')`], consumer)
}

function node(script, args, cwd, settings) {
  run(process.execPath, [script, ...args], cwd, settings)
}

function run(command, args, cwd, settings) {
  const env = {
    ...process.env,
    PATH: `${join(root, '.tools/node_modules/.bin')}${delimiter}${process.env.PATH}`,
    CI: 'true',
    TURBO_TELEMETRY_DISABLED: '1',
    ...settings,
  }
  const { status } = spawnSync(command, args, { cwd, env, stdio: 'inherit' })
  if (status !== 0) throw new Error(`Failed in ${cwd}: ${[command, ...args].join(' ')}`)
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port: free } = probe.address()
      probe.close(() => resolve(free))
    })
  })
}
