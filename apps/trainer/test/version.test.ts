import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { run } from './support/terminal.ts'

test('the program tells its version, as its package has it', async () => {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(manifest) as { readonly version: string }
  expect(await run(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
})
