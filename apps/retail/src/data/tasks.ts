import type { LoadContext, TaskInput } from '@tiltyard/bundle'
import type { JsonObject } from '@tiltyard/core'
import { z } from 'zod'

import { benchmarkText, readingText } from './files.ts'

const actionSchema = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.json()),
})

/** Who the customer is and what it wants, in the benchmark's words; “you” is the customer. */
const scenarioSchema = z.object({
  domain: z.string(),
  reason_for_call: z.string(),
  known_info: z.string().nullish(),
  unknown_info: z.string().nullish(),
  task_instructions: z.string(),
})

/** What a task says to its customer, whoever plays it. */
export interface CustomerOptions {
  readonly scenario: z.output<typeof scenarioSchema>
  /** The wish that the conversation would come to, where it changes. */
  readonly resolved?: string
}

const taskSchema = z.object({
  id: z.string(),
  user_scenario: z.object({ instructions: scenarioSchema }),
  evaluation_criteria: z.object({
    actions: z.array(actionSchema).nullish(),
    communicate_info: z.array(z.string()).nullish(),
    nl_assertions: z.array(z.string()).nullish(),
    reward_basis: z.array(z.string()),
  }),
})

const splitsSchema = z.object({ train: z.array(z.string()), test: z.array(z.string()) })

const readingSchema = z.object({
  tasks: z.record(
    z.string(),
    z.object({ class: z.enum(['S1', 'S2', 'S3']), resolved: z.string().optional() }),
  ),
})

/** How a task can be asked for without a model that plays the customer. */
export type TaskClass =
  /** All wishes are in the ticket. */
  | 's1'
  /** The wish changes in the conversation: `resolved` says what it comes to. */
  | 's2'
  /** The right store is the one that it begins with. */
  | 's3'

/** Our own reading of the benchmark's tasks; the others are `s1`. */
const classes: Readonly<Record<Exclude<TaskClass, 's1'>, readonly string[]>> = {
  s2: '5 6 7 8 9 18 21 22 45 46 47 71 72 84 91 92 98'.split(' '),
  s3: '10 12 24 25 50 57 62 65 67 68 105'.split(' '),
}

function classOf(id: string): TaskClass {
  return classes.s2.includes(id) ? 's2' : classes.s3.includes(id) ? 's3' : 's1'
}

/** The benchmark's tasks, each asked by the bundle's customer. */
export async function readTasks(load: LoadContext): Promise<readonly TaskInput[]> {
  const tasks = z.array(taskSchema).parse(JSON.parse(await benchmarkText(load, 'tasks.json')))
  const splits = await readSplits(load)
  const reading = await readingText(load)
  const resolved = reading === undefined ? {} : readingSchema.parse(JSON.parse(reading)).tasks
  return tasks.map(({ id, user_scenario, evaluation_criteria }): TaskInput => {
    const { actions, communicate_info, nl_assertions, reward_basis } = evaluation_criteria
    const wish = resolved[id]?.resolved
    const scenario = user_scenario.instructions
    const options: JsonObject = {
      scenario: Object.fromEntries(
        Object.entries(scenario).map(([key, value]) => [key, value ?? null]),
      ),
      ...(wish === undefined ? {} : { resolved: wish }),
    }
    return {
      id,
      user: { use: 'customer', options },
      gold: {
        calls: (actions ?? []).map(({ name, arguments: args }) => ({ name, arguments: args })),
      },
      expect: {
        told: communicate_info ?? [],
        assertions: nl_assertions ?? [],
        basis: reward_basis,
      },
      tags: [splits.train.includes(id) ? 'train' : 'test', classOf(id)],
    }
  })
}

/** The benchmark's split, and parts of it. */
export async function readEvals(load: LoadContext): Promise<Record<string, readonly string[]>> {
  const { train, test } = await readSplits(load)
  const of = (ids: readonly string[], ...kinds: readonly TaskClass[]) =>
    ids.filter((id) => kinds.includes(classOf(id)))
  return {
    train,
    test,
    'train-s1': of(train, 's1'),
    'train-solvable': of(train, 's1', 's2'),
    'test-solvable': of(test, 's1', 's2'),
    noop: of([...train, ...test], 's3'),
    smoke: of(train, 's1').slice(0, 5),
  }
}

async function readSplits(load: LoadContext) {
  return splitsSchema.parse(JSON.parse(await benchmarkText(load, 'split_tasks.json')))
}
