import type { EpisodeFilter } from '@tiltyard/core'
import { type Command, InvalidArgumentError, Option } from 'commander'

import { wholeNumber } from './arguments.ts'

/** What a person typed to choose episodes. */
export interface FilterFlags extends EpisodeFilter {
  readonly split?: 'train' | 'eval'
}

/** Adds the options that choose episodes. */
export function withFilter(command: Command): Command {
  return command
    .addOption(new Option('--split <name>', 'only this split').choices(['train', 'eval']))
    .option('--evaluation <name>', 'only this evaluation')
    .option('--step <n>', 'only this step', wholeNumber)
    .option('--group <n>', 'only this place in the batch of its step', wholeNumber)
    .option('--task <id>', 'only this task')
    .option(
      '--end <reason>',
      'only this end: completed, failed, cancelled, unfinished, or the limit that cut',
    )
    .option('--min-reward <x>', 'only rewards from here on', finiteNumber)
    .option('--max-reward <x>', 'only rewards up to here', finiteNumber)
    .option('--trained', 'only what was in an update')
    .option('--no-trained', 'only what was kept out of one')
}

const members = [
  'split',
  'evaluation',
  'step',
  'group',
  'task',
  'end',
  'minReward',
  'maxReward',
  'trained',
] as const satisfies readonly (keyof EpisodeFilter)[]

export function filterOf(flags: FilterFlags): EpisodeFilter {
  return Object.fromEntries(
    members
      .filter((member) => flags[member] !== undefined)
      .map((member) => [member, flags[member]]),
  )
}

function finiteNumber(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value)) return value
  throw new InvalidArgumentError(`expected a number, got "${text}"`)
}
