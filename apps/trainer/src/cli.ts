import { createRequire } from 'node:module'

import { exitCodes } from './exit.ts'
import { isAtLeast } from './node-version.ts'

const { engines } = createRequire(import.meta.url)('../package.json') as {
  readonly engines: { readonly node: string }
}
const needed = engines.node.replace('>=', '')
if (isAtLeast(process.versions.node, needed)) {
  // Not before: what it imports doesn't load on an older Node.
  const { runProgram } = await import('./program.ts')
  await runProgram()
} else {
  process.stderr.write(
    `tiltyard needs Node ${needed} or newer; this is Node ${process.versions.node}.\n` +
      'Install a newer one (https://nodejs.org, or your version manager) and run the command again.\n',
  )
  process.exitCode = exitCodes.usage
}
