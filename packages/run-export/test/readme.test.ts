import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { exportTables } from '../src/index.ts'

test('the README tells the columns of each table as they are', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  const told = readme
    .split(/^### /m)
    .slice(1)
    .map((section) => ({
      name: section.slice(0, section.indexOf('\n')),
      columns: [...section.matchAll(/^\| `(\w+)` +\| ([^|]+?) +\| (.+?) +\|$/gm)].map(
        ([, name, type, about]) => ({ name, type, about }),
      ),
    }))
  const expected = exportTables.map(({ name, columns }) => ({
    name,
    columns: columns.map((column) => {
      const type = typeof column.type === 'string' ? column.type : `LIST<${column.type.list}>`
      const { required, about } = column
      return { name: column.name, type: required ? type : `${type}, may be empty`, about }
    }),
  }))
  expect(told).toEqual(expected)
})
