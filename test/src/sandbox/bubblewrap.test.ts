import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Sandbox } from '@tiltyard/core'
import { bubblewrapSandbox } from '@tiltyard/sandbox-bubblewrap'
import { registerCases, sandboxCases } from '@tiltyard/testkit'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'

import { describeWith, program, type Requirement } from '../../support/machine.ts'

/** Where a sandbox sees it. */
const python: Requirement = {
  what: '/usr/bin/python3',
  found: existsSync('/usr/bin/python3') ? '/usr/bin/python3' : undefined,
}

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

  test('no file of this machine but programs is in reach', async () => {
    writeFileSync(join(folder, 'secret'), 'sentinel')
    const sandbox = await bubblewrapSandbox().open()
    expect((await sandbox.exec(`cat ${folder}/secret`)).stdout).toBe('')
    const { stdout } = await sandbox.exec('ls -d /* /home/* /etc/*')
    const places = stdout.trim().split('\n')
    expect(places.filter((place) => !place.startsWith('/etc')).toSorted()).toEqual(
      [
        ['/bin', '/dev', '/home', '/home/agent', '/lib', '/lib64'],
        ['/proc', '/sbin', '/tmp', '/usr'],
      ].flat(),
    )
    // Not every machine has it.
    expect(['/etc', '/etc/alternatives']).toEqual(
      expect.arrayContaining(places.filter((place) => place.startsWith('/etc'))),
    )
    await sandbox.close()
  })

  test('nothing but its home and /tmp takes files, whoever may write to it outside', async () => {
    // Not below /tmp, which is the sandbox's own inside.
    const shared = mkdtempSync('/var/tmp/tiltyard-bwrap-test-')
    onTestFinished(() => {
      rmSync(shared, { recursive: true })
    })
    chmodSync(shared, 0o777)
    writeFileSync(join(shared, 'text'), 'to read')
    const sandbox = await bubblewrapSandbox({ readOnly: [shared] }).open()
    expect((await sandbox.exec(`cat ${shared}/text`)).stdout).toBe('to read')
    const wrote = await sandbox.exec(
      `for p in ${shared} / /usr /usr/bin /dev /dev/shm /etc; do echo x > $p/planted && echo "wrote $p"; done`,
    )
    expect(wrote.stdout).toBe('')
    expect(readdirSync(shared)).toEqual(['text'])
    const { stdout } = await sandbox.exec('cat /proc/self/mountinfo')
    const mounts = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
    const writable = mounts.filter(([, , , , , options]) => options!.startsWith('rw'))
    expect(
      writable.map(([, , , , place]) => place!).filter((place) => !place.startsWith('/dev/')),
    ).toEqual(['/proc', '/home/agent', '/tmp'])
    await sandbox.close()
  })

  test('a link that leaves the sandbox leads nowhere, for commands and for read', async () => {
    writeFileSync(join(folder, 'secret'), 'sentinel')
    chmodSync(folder, 0o777)
    const sandbox = await bubblewrapSandbox().open()
    await sandbox.exec(`ln -s ${folder}/secret link; ln -s ${folder} dir`)
    await expect(sandbox.read('link', 100)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(sandbox.write('dir/planted', 'x')).rejects.toMatchObject({ code: 'STORE' })
    expect(readdirSync(folder)).toEqual(['secret'])
    await sandbox.close()
  })

  test('there is no network and no process of this machine in sight', async () => {
    let calls = 0
    const server = createServer((socket) => {
      calls += 1
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const sandbox = await bubblewrapSandbox().open()
    const called = await sandbox.exec(`exec 3<>/dev/tcp/127.0.0.1/${port}`)
    expect([called.exitCode === 0, called.stopped]).toEqual([false, undefined])
    await once(connect(port, '127.0.0.1').resume(), 'close')
    expect(calls).toBe(1)
    server.close()

    const devices = await sandbox.exec('tail -n +3 /proc/net/dev')
    expect(devices.stdout.match(/^ *\S+(?=:)/gm)?.map((name) => name.trim())).toEqual(['lo'])
    const { stdout } = await sandbox.exec('cat /proc/[0-9]*/cmdline')
    expect(stdout).toContain('cat')
    expect(stdout).not.toContain(readFileSync('/proc/self/cmdline', 'utf8').split('\0')[0])
    await sandbox.close()
  })

  test('it has no rights: no capability and no way to one, no mount, no other user, no terminal', async () => {
    const sandbox = await bubblewrapSandbox().open()
    const { stdout } = await sandbox.exec(
      'mount -t tmpfs none /tmp && echo mounted; unshare -r true && echo all of them; id -u',
    )
    expect(stdout).toBe('1000\n')
    const status = (await sandbox.exec('cat /proc/self/status')).stdout
    expect(status.match(/^Cap\w+:\s*0+$/gm)).toHaveLength(5)
    expect(status).toMatch(/^NoNewPrivs:\s*1$/m)
    // Its session, 0 where that is one from outside.
    const session = (await sandbox.exec('cat /proc/self/stat')).stdout.split(' ')[5]
    expect(Number(session)).toBeGreaterThan(0)
    await sandbox.close()
  })

  test('forks without end stay within the limit and are gone afterwards', async () => {
    const sandbox = await bubblewrapSandbox().open({ limits: { processes: 20 } })
    const mark = `bomb of ${folder}`
    const defuse = new AbortController()
    const bomb = sandbox.exec(`f() { f | f & }; f; sleep 60 # ${mark}`, { signal: defuse.signal })
    await expect.poll(() => processesOf(mark).length).toBeGreaterThan(10)
    let most = 0
    for (let look = 0; look < 15; look += 1) {
      most = Math.max(most, processesOf(mark).length)
      await sleep(100)
    }
    // The sandbox’s own few are among them; a bomb without a limit makes thousands.
    expect(most).toBeLessThan(100)
    defuse.abort()
    expect((await bomb).stopped).toMatch(/aborted|processes/)
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

  describeWith(python, 'of Python', () => {
    test('memory that processes could share is counted, once', async () => {
      const sandbox = await bubblewrapSandbox().open({
        limits: { memoryBytes: 120_000_000, commandMs: 120_000 },
      })
      // A map of 80 MB, shared by as many processes as the command line says.
      const script = `import mmap, os, sys, time
map = mmap.mmap(-1, 80_000_000)
for at in range(0, len(map), 4096): map[at] = 1
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0: break
for at in range(0, len(map), 4096): map[at]
print('had', flush=True)
time.sleep(float(sys.argv[2]))`
      await sandbox.write('hold.py', script)
      const shared = await sandbox.exec('python3 hold.py 3 0.5')
      expect(shared).toMatchObject({ exitCode: 0, stdout: 'had\n'.repeat(3) })
      const each = await sandbox.exec('python3 hold.py 1 60 & python3 hold.py 1 60; wait')
      expect(each.stopped).toBe('memory')
      await sandbox.close()
    })
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

  /** Two sleeps, one of them in the background, of a length that no other has; resolves when they sleep. */
  async function nap(sandbox: Sandbox) {
    const seconds = `60.${process.pid}${Date.now()}`
    const running = sandbox.exec(`sleep ${seconds} & sleep ${seconds}`)
    await expect.poll(() => processesOf(`sleep\0${seconds}`)).toHaveLength(2)
    return { seconds, running }
  }

  test('closing leaves no folder and no process', async () => {
    const provider = bubblewrapSandbox({ folder })
    const { seconds, running } = await nap(await provider.open())
    expect(readdirSync(folder)).toHaveLength(1)
    await provider.close()
    expect((await running).stopped).toBe('aborted')
    expect(readdirSync(folder)).toEqual([])
    await expect.poll(() => processesOf(seconds)).toEqual([])
  })

  test('an aborted signal closes the sandbox', async () => {
    const controller = new AbortController()
    const sandbox = await bubblewrapSandbox({ folder }).open({ signal: controller.signal })
    const { seconds, running } = await nap(sandbox)
    controller.abort()
    expect((await running).stopped).toBe('aborted')
    await sandbox.close()
    expect(readdirSync(folder)).toEqual([])
    await expect.poll(() => processesOf(seconds)).toEqual([])
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
