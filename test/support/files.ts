import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** All that lies below a folder as one text: names and contents, what is packed with gzip unpacked. */
export async function textBelow(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const texts = entries
    .filter((entry) => entry.isFile())
    .map(async ({ parentPath, name }) => {
      const content = await readFile(join(parentPath, name))
      return `${name} ${(name.endsWith('.gz') ? gunzipSync(content) : content).toString('latin1')}`
    })
  return (await Promise.all(texts)).join('\n')
}
