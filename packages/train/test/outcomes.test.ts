import { readFileSync } from 'node:fs'

import { cutReasons } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { untrainedReasons } from '../src/index.ts'

test('F78: the README has one row for each outcome of an episode, and no other', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const section = readme.split('## What becomes of an episode')[1]!.split('\n## ')[0]!
  const rows = section.split('\n').flatMap((line) => /^\| `(\w+)` *\|/.exec(line)?.[1] ?? [])
  const ends = ['completed', ...cutReasons, 'failed', 'cancelled']
  expect(rows).toEqual([...ends, ...untrainedReasons])
})
