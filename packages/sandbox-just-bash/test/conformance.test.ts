import { registerCases, sandboxCases } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { justBashSandbox } from '../src/index.ts'

const planted = 'sentinel-of-this-process'
process.env['TILTYARD_PLANTED'] = planted

registerCases(
  test,
  sandboxCases({
    create: justBashSandbox,
    planted,
    lacks: { background: 'just-bash waits for what a script puts into the background' },
  }),
)

test('neither files nor programs of this machine are in reach', async () => {
  const sandbox = await justBashSandbox().open()
  const result = await sandbox.exec(
    'cat /etc/passwd; cat ../../../etc/hostname; node -v; curl http://127.0.0.1',
  )
  expect(result.stdout).toBe('')
  expect(result.exitCode).not.toBe(0)
  await sandbox.close()
})

test('a disk over its limit stops the script that fills it, and keeps what was there', async () => {
  const sandbox = await justBashSandbox().open({ limits: { diskBytes: 200_000 } })
  await sandbox.write('a', 'x'.repeat(90_000))
  expect(await sandbox.exec('cat a a a > b')).toMatchObject({ stopped: 'disk', exitCode: 1 })
  await expect(sandbox.write('c', 'x'.repeat(190_000))).rejects.toThrow(
    'its disk of 200000 bytes is full',
  )
  expect((await sandbox.exec('wc -c < a')).stdout.trim()).toBe('90000')
  await sandbox.close()
})
