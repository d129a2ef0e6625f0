import { localBackend } from '@tiltyard/backend-local'
import type { Backend, TaskSource } from '@tiltyard/core'
import { stepReward } from '@tiltyard/testkit'
import type { PlannedTask } from '@tiltyard/train'

import { LETTERS } from './letters.ts'

/** The task of the agents that learn: say words of vowels. */
export const singing = [{ id: 'vowels', prompt: 'sing' }] as const

/** Its reward: the share of vowels in what was said. */
export function shareOfVowels(said: string): number {
  const letters = said.replaceAll(' ', '')
  return letters === '' ? 0 : letters.replaceAll(/[^aeiou]/g, '').length / letters.length
}

/** A policy of letters, so small that it learns to sing in seconds. */
export function tinyBackend(folder: string): Backend {
  const shape = {
    vocabularySize: LETTERS,
    width: 32,
    layers: 1,
    heads: 2,
    kvHeads: 1,
    headSize: 16,
    hidden: 64,
    contextWindow: 64,
  }
  return localBackend({ folder, models: { tiny: { shape } }, threads: 1 })
}

/** The source's tasks, in groups of 16. */
export async function planned(source: TaskSource): Promise<readonly PlannedTask[]> {
  const tasks: PlannedTask[] = []
  for await (const task of source.tasks('all'))
    tasks.push({ source, task, size: 16, reward: stepReward('reward') })
  return tasks
}
