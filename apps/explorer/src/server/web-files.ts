import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export interface WebFile {
  readonly body: Uint8Array<ArrayBuffer>
  readonly type: string
}

/**
 * The built page, by path (`/assets/index-….js`), read once: requests are looked up here and never reach the file system.
 * @throws Error when the page isn't built.
 */
export async function readWebFiles(): Promise<ReadonlyMap<string, WebFile>> {
  const folder = await webFolder()
  const names = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile())
  return new Map(
    await Promise.all(
      files.map(async (entry) => {
        const file = join(entry.parentPath, entry.name)
        const path = `/${relative(folder, file).replaceAll(sep, '/')}`
        const body = new Uint8Array(await readFile(file))
        return [path, { body, type: types[extname(file)] ?? 'application/octet-stream' }] as const
      }),
    ),
  )
}

/** `web` lies beside the built program; sources find the build of their package. */
async function webFolder(): Promise<string> {
  for (const place of ['./web/', '../../dist/web/']) {
    const folder = fileURLToPath(new URL(place, import.meta.url))
    const found = await readFile(join(folder, 'index.html')).catch(() => undefined)
    if (found !== undefined) return folder
  }
  throw new Error(
    'the page of the explorer is not built; run: pnpm turbo run build --filter=@tiltyard/explorer',
  )
}
