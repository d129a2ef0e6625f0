import type { Bundle } from '@tiltyard/bundle'
import type { JsonObject } from '@tiltyard/core'

/** A Python class whose methods have a bundle's tools for docstrings, as the benchmark writes them. */
export function pythonOf({ tools }: Bundle): string {
  const methods = [...tools.values()].map(({ spec: { name, description = '', parameters } }) => {
    const properties = Object.entries(
      (parameters['properties'] ?? {}) as Record<string, JsonObject>,
    )
    const signature = properties.map(
      ([key, { type }]) => `        ${key}: ${type === 'array' ? 'List[str]' : 'str'},\n`,
    )
    const args = properties.map(
      ([key, { description: text }]) =>
        `            ${key}: ${(text as string).replaceAll('\n', '\n                ')}\n`,
    )
    const [summary, ...more] = description.replace('\n\n', '\n').split('\n')
    return [
      `    @is_tool(ToolType.READ)\n    def ${name}(\n        self,\n${signature.join('')}    ) -> str:\n`,
      `        """${[summary, ...more.map((line) => `        ${line}`)].join('\n')}\n\n`,
      args.length === 0 ? '' : `        Args:\n${args.join('')}\n`,
      `        Returns:\n            str: The result.\n        """\n        return ''\n`,
    ].join('')
  })
  return `class RetailTools(ToolKitBase):\n${methods.join('\n')}`
}
