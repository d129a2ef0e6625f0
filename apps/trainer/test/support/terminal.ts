import { PassThrough } from 'node:stream'

import { main } from '../../src/main.ts'

/** The program as a test sees it: arguments in, exit code and texts out. */
export async function run(
  args: readonly string[],
  {
    input = '',
    env = {},
    interrupted = false,
    tty = false,
  }: {
    readonly input?: string
    readonly env?: Readonly<Record<string, string>>
    /** Ctrl-C was pressed before anything began. */
    readonly interrupted?: boolean
    /** Whether a person seems to look on. */
    readonly tty?: boolean
  } = {},
) {
  const stdin = new PassThrough()
  stdin.end(input)
  const [stdout, stderr] = [collected(), collected()]
  const interrupts = { soft: new AbortController(), hard: new AbortController() }
  if (interrupted) interrupts.soft.abort()
  const code = await main(args, {
    stdin,
    stdout: Object.assign(stdout.stream, { isTTY: tty }),
    stderr: stderr.stream,
    env,
    interrupts: { soft: interrupts.soft.signal, hard: interrupts.hard.signal },
  })
  return { code, stdout: stdout.text(), stderr: stderr.text() }
}

function collected() {
  const stream = new PassThrough()
  const parts: Buffer[] = []
  stream.on('data', (chunk: Buffer) => parts.push(chunk))
  return {
    stream,
    text: () => {
      for (let chunk: unknown = stream.read(); chunk !== null; chunk = stream.read())
        parts.push(chunk as Buffer)
      return Buffer.concat(parts).toString()
    },
  }
}
