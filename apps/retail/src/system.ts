import type { LoadContext } from '@tiltyard/bundle'

import { benchmarkText } from './data/files.ts'

/** The system prompt: what the agent is, in our words, and the benchmark's policy. */
export async function readSystem(load: LoadContext): Promise<string> {
  const policy = await benchmarkText(load, 'policy.md')
  return [
    'You serve customers of an online shop, and keep to the policy below. Each of your messages either calls a tool or speaks to the customer, never both.',
    '',
    '<policy>',
    policy.trim(),
    '</policy>',
  ].join('\n')
}
