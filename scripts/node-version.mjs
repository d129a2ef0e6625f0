// Old syntax on purpose, here and in the scripts that import this file: they must parse on the Node
// that they refuse.
import { readFileSync } from 'fs'
import { dirname, join } from 'path'
import { fileURLToPath } from 'url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Runs `body` on a Node that is new enough; on an older one says what to do, and the exit code is 1. */
export function withRecentNode(body) {
  const range = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines.node
  const floor = range.replace('>=', '')
  const found = process.versions.node
  if (!atLeast(found, floor)) {
    console.error(
      'Tiltyard needs Node ' +
        floor +
        ' or newer; this is Node ' +
        found +
        '.\n' +
        'Install a newer one (https://nodejs.org, or your version manager: nvm, fnm, volta, mise) and run the command again.',
    )
    process.exitCode = 1
    return
  }
  body().catch(function (error) {
    console.error(error.expected ? error.message : error)
    process.exitCode = 1
  })
}

function atLeast(version, floor) {
  const has = version.split('.').map(Number)
  const wants = floor.split('.').map(Number)
  for (let i = 0; i < wants.length; i++) {
    if (has[i] !== wants[i]) return has[i] > wants[i]
  }
  return true
}
