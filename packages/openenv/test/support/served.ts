import { afterEach, beforeEach } from 'vitest'

import { openenvServer, type OpenEnvServer, type OpenEnvServerOptions } from '../../src/index.ts'
import { rightRule, type SumsSource, sumsSource } from './sums.ts'

export let source: SumsSource
export let server: OpenEnvServer
export let base: string

/** Serves sums, in the place of what was served before. */
export async function serve(options: Partial<OpenEnvServerOptions> = {}): Promise<void> {
  await server?.close()
  source = sumsSource()
  server = openenvServer({ source, reward: rightRule, splits: ['train'], ...options })
  base = await server.listen()
  // The server has looked at a first task's tools.
  source.ends.length = 0
}

/** Each test of the file that calls this has a server of its own. */
export function serveEachTest(): void {
  beforeEach(() => serve())
  afterEach(() => server.close())
}

export const callAdd = (a: number, b: number) => ({
  type: 'step',
  data: { type: 'call_tool', tool_name: 'add', arguments: { a, b } },
})
