import { TiltyardError, asError, withDeadline } from '@tiltyard/core'
import { createTarDecoder } from 'modern-tar'

import { detailOf, short, TinkerError } from './errors.ts'
import type { CheckedOptions } from './options.ts'
import type { Transport } from './transport.ts'

/** One file in the archive of a checkpoint. */
export interface ArchiveFile {
  /** As it is in the archive: relative, and nowhere above it. */
  readonly name: string
  readonly bytes: number
  /** To be read before the next file is asked for; what isn't read is passed over. */
  readonly content: AsyncIterable<Uint8Array>
}

/** Where and for what something is downloaded, in words for errors: an address is as good as a key, and isn't told. */
interface Download {
  readonly url: string
  readonly operation: string
}

/** The last thing that a service puts into an archive. */
const MARKER = 'checkpoint_complete'

/** Reads an archive as it arrives, without a key. @throws TinkerError when it can't be had, is cut, or isn't whole. */
export async function* archiveFiles(
  download: Download,
  transport: Transport,
  options: CheckedOptions,
  signal: AbortSignal,
): AsyncGenerator<ArchiveFile, void, undefined> {
  const { operation } = download
  const failed = (why: string, cause?: unknown) =>
    new TinkerError('TINKER_FAILED', `can't ${operation}: ${why}`, { operation }, { cause })
  const bytes = ReadableStream.from(piecesOf(download, transport, options, signal))
  const told = (error: unknown) => {
    if (signal.aborted) return asError(signal.reason)
    if (TiltyardError.is(error)) return error
    return failed('what came is no whole tar; try again', error)
  }
  let whole = false
  try {
    for await (const { header, body } of bytes.pipeThrough(createTarDecoder({ strict: true }))) {
      if (header.name === MARKER) whole = true
      if (header.type !== 'file' || header.name === MARKER) {
        await body.cancel()
        continue
      }
      if (header.name.startsWith('/') || header.name.split('/').includes('..'))
        throw failed(`it holds a file that would lie outside of it: ${short(header.name)}`)
      const reader = body.getReader()
      yield { name: header.name, bytes: header.size, content: contentOf(reader, told) }
      // The next file comes when this one is out of the way.
      await reader.cancel()
    }
  } catch (error) {
    throw told(error)
  }
  if (!whole) throw failed(`it isn't whole: there is no file ${MARKER} in it`)
}

async function* contentOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  told: (error: unknown) => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      yield value
    }
  } catch (error) {
    throw told(error)
  }
}

async function* piecesOf(
  { url, operation }: Download,
  transport: Transport,
  { clock, deadlines }: CheckedOptions,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  // However long it is altogether, no pause in it may be longer than a request.
  const soon = <T>(work: (within: AbortSignal) => Promise<T>) =>
    withDeadline(work, {
      waitingFor: `the service to ${operation}`,
      milliseconds: deadlines.request,
      signal,
      clock,
    })
  const ended = new AbortController()
  const either = AbortSignal.any([signal, ended.signal])
  try {
    const { status, body } = await soon(() => transport.download(url, either))
    const pieces = body[Symbol.asyncIterator]()
    let said = new Uint8Array()
    for (;;) {
      const { value, done } = await soon(() => pieces.next())
      if (done === true) break
      if (status === 200) yield value
      else said = Buffer.concat([said, value])
    }
    if (status !== 200)
      throw new TinkerError(
        'TINKER_FAILED',
        `can't ${operation}: its address answered ${status} (${detailOf(said, (text) => text)}); ask for it anew`,
        { operation, status },
      )
  } catch (error) {
    if (signal.aborted || TiltyardError.is(error)) throw error
    throw new TinkerError(
      'TINKER_UNREACHABLE',
      `can't ${operation}: the download broke off; check the network, and try again`,
      { operation },
      { cause: error },
    )
  } finally {
    ended.abort()
  }
}
