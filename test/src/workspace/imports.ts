import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

export interface Import {
  readonly file: string
  readonly specifier: string
}

/** Every import, export-from and `import()` in the TypeScript files below a folder. A specifier is fixed text: `from "${path}"` is a message. */
export function importsBelow(folder: string): readonly Import[] {
  return sources(folder).flatMap((file) =>
    importsOf(readFileSync(file, 'utf8')).map((specifier) => ({ file, specifier })),
  )
}

export function importsOf(source: string): readonly string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  const forms =
    /(?:^|[;\s])(?:import|export)\s[^'"`;]*?from\s*['"]([^'"$]+)['"]|(?:^|[;\s])import\s*['"]([^'"$]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g
  return [...code.matchAll(forms)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

/** The package that a bare specifier names: `hono/streaming` → `hono`. */
export function packageOf(specifier: string): string {
  const parts = specifier.split('/')
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
}

function sources(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file))
}
