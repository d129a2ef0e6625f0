import { describe, expect, test } from 'vitest'

import { blocksOf, commandsOf, linksOf, programsOf } from './blocks.ts'

const document = `# Title
<!-- ts import { limit } from './limit.ts'
declare const count: number -->

\`\`\`ts run
limit(count)
\`\`\`

text
\`\`\`ts continued
limit(2)
\`\`\`

\`\`\`ts file=limit.ts
export const limit = (n: number) => n
\`\`\`
`

describe('the programs of a document', () => {
  const programs = programsOf(blocksOf(document))

  test('keep the lines of the document, hidden ones included', () => {
    const hidden = "import { limit } from './limit.ts'\ndeclare const count: number"
    expect(programs[0]?.source.split('\n').map((line) => line.trim())).toEqual([
      '',
      ...hidden.split('\n'),
      '',
      '',
      'limit(count)',
      '',
      '',
      '',
      '',
      'limit(2)',
      '',
    ])
  })

  test('are one for each block that does not continue another', () => {
    expect(programs.map(({ name, runs }) => ({ name, runs }))).toEqual([
      { name: 'line-2.ts', runs: true },
      { name: 'limit.ts', runs: false },
    ])
  })
})

test('commands come without prompts, comments and line breaks', () => {
  const lines = ['# once', '$ npm install \\', '  zod  # the peer', '', 'pnpm build']
  expect(commandsOf({ start: 1, lines })).toEqual(['npm install zod', 'pnpm build'])
})

test('links in code are not links', () => {
  const text = 'see [a](docs/a.md "title") and ![b](b.png) `[c](c.md)`\n```text\n[d](d.md)\n```\n'
  expect(linksOf(text)).toEqual(['docs/a.md', 'b.png'])
})
