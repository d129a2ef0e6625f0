import { mkdir, mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { AwsClient } from 'aws4fetch'

import { freePorts } from '../../support/ports.ts'
import { runOk } from '../../support/run.ts'

const script = fileURLToPath(new URL('radosgw.sh', import.meta.url))

export interface Radosgw {
  readonly endpoint: string
  readonly bucket: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
  stop(): Promise<void>
}

/** A Ceph object gateway of our own with an empty bucket; takes about 15 seconds. */
export async function startRadosgw(): Promise<Radosgw> {
  const folder = await mkdtemp(join(tmpdir(), 'tiltyard-radosgw-'))
  const [port, ...monitorPorts] = await freePorts(3)
  const stop = async () => {
    await stopProcesses(join(folder, 'run'))
    await rm(folder, { recursive: true, maxRetries: 20 })
  }
  try {
    await mkdir(join(folder, 'run'))
    await runOk('bash', [script, folder, `${port}`, ...monitorPorts.map(String)], { cwd: folder })
    // The name that the server takes for its own, so that buckets may stand before it.
    const endpoint = `http://localhost:${port}`
    const credentials = { accessKeyId: 'tiltyard', secretAccessKey: 'tiltyardsecret' }
    const bucket = 'runs'
    const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1' })
    const made = await client.fetch(`${endpoint}/${bucket}`, { method: 'PUT' })
    if (!made.ok) throw new Error(`the bucket was not made: ${made.status} ${await made.text()}`)
    return { endpoint, bucket, credentials, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function stopProcesses(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.pid'))
  const pids = await Promise.all(
    names.map(async (name) => Number(await readFile(join(folder, name), 'utf8'))),
  )
  for (const pid of pids) signal(pid, 'SIGKILL')
  while (pids.some((pid) => signal(pid, 0))) await sleep(20)
}

/** False: there is no such process. */
function signal(pid: number, kind: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, kind)
  } catch {
    return false
  }
}
