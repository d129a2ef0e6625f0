import type { LoadContext } from '@tiltyard/bundle'
import { z } from 'zod'

import { parametersOf, type RetailToolSpec } from '../tools/tools.ts'
import { toolsText } from './files.ts'

const definitionsSchema = z.array(
  z.object({
    function: z.object({
      name: z.string(),
      description: z.string(),
      parameters: z.record(z.string(), z.json()),
    }),
  }),
)

/** What a model is told of the tools. @throws Error naming tools that the data don't describe. */
export async function readToolSpecs(load: LoadContext): Promise<readonly RetailToolSpec[]> {
  const text = await toolsText(load)
  const specs =
    'json' in text
      ? definitionsSchema.parse(JSON.parse(text.json)).map((entry) => entry.function)
      : specsFromPython(text.python)
  const missing = Object.keys(parametersOf).filter((name) => specs.every((it) => it.name !== name))
  if (missing.length > 0) throw new Error(`the data describe no tool ${missing.join(', ')}`)
  return specs.filter(({ name }) => Object.hasOwn(parametersOf, name))
}

const toolPattern =
  /^ {4}@is_tool\([\w.]+\)\n {4}def (\w+)\(([^)]*)\)[^:]*:\n {8}"""\n?([\s\S]*?)"""/gm
const parameterPattern = /(\w+): (str|List\[str\])/g

/** The definitions that the benchmark makes of its methods' docstrings: a summary, more of it, and a line per argument. */
export function specsFromPython(source: string): readonly RetailToolSpec[] {
  return [...source.matchAll(toolPattern)].map(([, name = '', signature = '', docstring = '']) => {
    const { description, args } = readDocstring(docstring)
    const parameters = [...signature.matchAll(parameterPattern)].map(
      ([, parameter = '', type]) =>
        [
          parameter,
          {
            ...(args.has(parameter) ? { description: args.get(parameter)! } : {}),
            ...(type === 'str' ? {} : { items: { type: 'string' } }),
            title: titleOf(parameter),
            type: type === 'str' ? 'string' : 'array',
          },
        ] as const,
    )
    return {
      name,
      description,
      parameters: {
        properties: Object.fromEntries(parameters),
        ...(parameters.length === 0 ? {} : { required: parameters.map(([key]) => key) }),
        title: 'parameters',
        type: 'object',
      },
    }
  })
}

function readDocstring(docstring: string): {
  readonly description: string
  readonly args: ReadonlyMap<string, string>
} {
  const lines = docstring.split('\n').map((line) => line.replace(/^ {8}/, '').trimEnd())
  const head = lines.findIndex((line) => /^(?:Args|Returns|Raises):$/.test(line))
  const [summary = '', ...more] = lines.slice(0, head).join('\n').trim().split('\n')
  const description = more.length === 0 ? summary : `${summary}\n\n${more.join('\n')}`
  const args = new Map<string, string>()
  const start = lines.indexOf('Args:')
  if (start === -1) return { description, args }
  let current = ''
  for (const line of lines.slice(start + 1)) {
    if (!line.startsWith(' ')) break
    const named = /^ {4}(\w+): (.*)$/.exec(line)
    if (named === null) args.set(current, `${args.get(current) ?? ''}\n${line.trim()}`)
    else {
      current = named[1]!
      args.set(current, named[2]!)
    }
  }
  return { description, args }
}

/** `Order Id` of `order_id`. */
function titleOf(parameter: string): string {
  return parameter.replaceAll(
    /(?:^|_)([a-z])/g,
    (part, letter: string) => `${part.startsWith('_') ? ' ' : ''}${letter.toUpperCase()}`,
  )
}
