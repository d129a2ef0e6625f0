import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { bubblewrapSandbox } from '@tiltyard/sandbox-bubblewrap'
import { registerCases, sandboxCases } from '@tiltyard/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { describeWith, program } from '../../support/machine.ts'

const planted = 'sentinel-of-this-process'
process.env['TILTYARD_PLANTED'] = planted

describeWith(program('bwrap'), 'bubblewrap sandbox', () => {
  registerCases(test, sandboxCases({ create: () => bubblewrapSandbox(), planted }))

  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tiltyard-bwrap-test-'))
    // Each sandbox is another user's, who must reach its folder.
    chmodSync(folder, 0o755)
  })
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  test('no file of this machine but programs is in reach, and those only to read', async () => {
    writeFileSync(join(folder, 'secret'), 'sentinel')
    const sandbox = await bubblewrapSandbox().open()
    const seen = await sandbox.exec(`cat ${folder}/secret; cat /etc/shadow; ls /root /home`)
    expect(seen.stdout).not.toContain('sentinel')
    expect(seen.stdout.trim().split('\n').at(-1)).toBe('agent')
    const wrote = await sandbox.exec(
      'for p in / /usr /usr/bin /dev /etc; do echo x > $p/planted && echo "wrote $p"; done',
    )
    expect(wrote.stdout).toBe('')
    await sandbox.close()
  })

  test('a link that leaves the sandbox leads nowhere, for commands and for read', async () => {
    writeFileSync(join(folder, 'secret'), 'sentinel')
    const sandbox = await bubblewrapSandbox().open()
    await sandbox.exec(`ln -s ${folder}/secret link; ln -s ${folder} dir`)
    await expect(sandbox.read('link', 100)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(sandbox.write('dir/planted', 'x')).rejects.toMatchObject({ code: 'STORE' })
    expect(readdirSync(folder)).toEqual(['secret'])
    await sandbox.close()
  })

  test('there is no network and no process of this machine in sight', async () => {
    const sandbox = await bubblewrapSandbox().open()
    const { stdout } = await sandbox.exec(
      'ls /sys/class/net 2>/dev/null; cat /proc/net/dev | tail -n +3; ls /proc | grep -c "^[0-9]"',
    )
    const lines = stdout.trim().split('\n')
    expect(lines.filter((line) => /eth|ens|wlan/.test(line))).toEqual([])
    expect(Number(lines.at(-1))).toBeLessThan(10)
    const refused = await sandbox.exec('exec 3<>/dev/tcp/127.0.0.1/22', { commandMs: 2000 })
    expect(refused.exitCode).not.toBe(0)
    await sandbox.close()
  })

  test('it has no rights: no mount, no other user, no signal outside', async () => {
    const sandbox = await bubblewrapSandbox().open()
    const { stdout } = await sandbox.exec(
      'mount -t tmpfs none /tmp && echo mounted; kill -9 1 && echo killed; id -u',
    )
    expect(stdout).not.toContain('mounted')
    expect(stdout.trim().split('\n').at(-1)).toBe('1000')
    await sandbox.close()
  })

  test('forks without end stay within the limit and are gone afterwards', async () => {
    const sandbox = await bubblewrapSandbox().open({ limits: { processes: 20 } })
    const mark = `bomb of ${folder}`
    let most = 0
    const looking = setInterval(() => {
      most = Math.max(most, processesOf(mark).length)
    }, 100)
    const bomb = `f() { f | f & }; f; sleep 60; echo survived # ${mark}`
    const result = await sandbox.exec(bomb, { commandMs: 1500 })
    clearInterval(looking)
    expect(result.stdout).toBe('')
    // The sandbox’s own few are among them; a bomb without a limit makes thousands.
    expect(most).toBeLessThan(100)
    await expect.poll(() => processesOf(mark)).toEqual([])
    expect((await sandbox.exec('echo well')).stdout).toBe('well\n')
    await sandbox.close()
  })

  test('memory over the limit is not to be had', async () => {
    const sandbox = await bubblewrapSandbox().open({ limits: { memoryBytes: 100_000_000 } })
    const result = await sandbox.exec(
      'head -c 400000000 /dev/zero | tail -c 399999999 > /dev/null && echo had',
    )
    expect(result.stdout).toBe('')
    expect(result.exitCode === 0).toBe(false)
    await sandbox.close()
  })

  test('memory of many processes together is bounded too', async () => {
    const sandbox = await bubblewrapSandbox().open({
      limits: { memoryBytes: 120_000_000, commandMs: 120_000 },
    })
    const hog = 'head -c 60000000 /dev/zero | tail -c 59999999 | sleep 60'
    const result = await sandbox.exec(`for i in 1 2 3 4 5; do (${hog}) & done; wait; echo had`)
    expect(result.stopped).toBe('memory')
    await sandbox.close()
  })

  test('a disk over its limit stops what fills it, in one file or in many', async () => {
    const sandbox = await bubblewrapSandbox().open({
      limits: { diskBytes: 20_000_000, commandMs: 120_000 },
    })
    const one = await sandbox.exec('head -c 100000000 /dev/zero > big; wc -c < big')
    expect(one.stopped === 'disk' || Number(one.stdout) <= 20_000_000).toBe(true)
    expect(await sandbox.exec('rm big; ls')).toMatchObject({ exitCode: 0, stdout: '' })
    const many = await sandbox.exec(
      'for i in $(seq 1 100000); do head -c 100000 /dev/zero > /tmp/$i; done',
    )
    expect(many.stopped).toBe('disk')
    await sandbox.close()
  })

  test('files without content fill the disk too', async () => {
    const sandbox = await bubblewrapSandbox().open({
      limits: { diskBytes: 100_000, commandMs: 120_000 },
    })
    const empty = await sandbox.exec('for i in $(seq 1 100000); do : > /tmp/$i; sleep 0.001; done')
    expect(empty.stopped).toBe('disk')
    await sandbox.close()
  })

  test('a disk over its limit may be tidied, and not filled further', async () => {
    const sandbox = await bubblewrapSandbox({ folder }).open({
      limits: { diskBytes: 1_000_000, commandMs: 120_000 },
    })
    // As if a command had been quicker than the looks at what it does.
    const [place] = readdirSync(folder)
    writeFileSync(join(folder, place!, 'tmp', 'over'), Buffer.alloc(30_000_000, 1))
    const beside = await sandbox.exec('for i in $(seq 1 100000); do echo $i > $i; sleep 0.01; done')
    expect(beside.stopped).toBe('disk')
    expect(await sandbox.exec('rm -f /tmp/over; ls /tmp')).toMatchObject({ stdout: '' })
    await sandbox.exec('rm *')
    expect((await sandbox.exec('echo well > note; cat note')).stdout).toBe('well\n')
    await sandbox.close()
  })

  test('closing leaves no folder and no process', async () => {
    const provider = bubblewrapSandbox({ folder })
    const sandbox = await provider.open()
    const running = sandbox.exec('sleep 60 & sleep 60')
    await new Promise((resolve) => setTimeout(resolve, 200))
    await provider.close()
    expect((await running).stopped).toBe('aborted')
    expect(readdirSync(folder)).toEqual([])
    await expect.poll(() => processesOf(folder)).toEqual([])
  })

  test('an aborted signal closes the sandbox', async () => {
    const controller = new AbortController()
    const sandbox = await bubblewrapSandbox({ folder }).open({ signal: controller.signal })
    const running = sandbox.exec('sleep 60')
    await new Promise((resolve) => setTimeout(resolve, 200))
    controller.abort()
    expect((await running).stopped).toBe('aborted')
    await sandbox.close()
    expect(readdirSync(folder)).toEqual([])
  })

  test('a folder that the sandbox can not be made in is an error, not a failed script', async () => {
    const sandbox = await bubblewrapSandbox({ readOnly: ['/no/such/folder'] }).open()
    await expect(sandbox.exec('true')).rejects.toThrow('/no/such/folder')
    await sandbox.close()
  })

  test('a machine without bubblewrap is told how to get it', async () => {
    await expect(bubblewrapSandbox({ program: 'no-such-bwrap' }).open()).rejects.toThrow(
      'apt-get install bubblewrap',
    )
  })
})

/** Processes in whose command line a text stands: other tests run sandboxes too. Dead ones have no command line any more. */
function processesOf(text: string): readonly string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text)
    } catch {
      return false
    }
  })
}
