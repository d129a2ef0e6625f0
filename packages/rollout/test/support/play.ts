import {
  isRewarded,
  type AssistantMessage,
  type GroupKey,
  type GroupPlan,
  type Observation,
  type Renderer,
  type Sampler,
  type SampleRequest,
  type Step,
} from '@tiltyard/core'
import {
  charRenderer,
  charText,
  charTools,
  failingSampler,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  type ScriptedEnv,
  type ScriptedEnvOptions,
  type SimulatedClock,
} from '@tiltyard/testkit'

import {
  createSlots,
  playGroup,
  type PlayedEpisode,
  type PlayedGroup,
  type RolloutOptions,
} from '../../src/index.ts'

export const groupKey: GroupKey = { split: 'train', step: 7, group: 3 }

export interface TestRollout extends Partial<RolloutOptions> {
  /** What the policy replies; `done` by default. */
  readonly replies?: Parameters<typeof scriptedSampler>[0]
  readonly sampler?: Sampler
  readonly renderer?: Renderer
  readonly slotCount?: number
}

/** Options of a rollout on a simulated clock. */
export function rollout(
  options: TestRollout = {},
): RolloutOptions & { readonly clock: SimulatedClock } {
  const {
    replies = ['done'],
    renderer = charRenderer(),
    slotCount = 4,
    sampler = scriptedSampler(replies),
    clock = simulatedClock(),
    ...given
  } = options
  return {
    seed: 11,
    policy: { sampler, renderer, sampling: {} },
    slots: createSlots(slotCount),
    wallClock: () => 1_000_000,
    ...given,
    clock: clock as SimulatedClock,
  }
}

/** Plays a group on the simulated clock; a play that would hang throws. */
export function play(plan: GroupPlan, options: TestRollout = {}): Promise<PlayedGroup> {
  const run = rollout(options)
  return run.clock.drive(playGroup(plan, groupKey, run))
}

/** Plays one Env to its end, which must be `completed` or `cut`. */
export async function playOne(
  env: ScriptedEnvOptions = {},
  options: TestRollout = {},
  plan: Partial<GroupPlan> = {},
): Promise<{ readonly episode: PlayedEpisode; readonly env: ScriptedEnv }> {
  const scripted = scriptedPlan(1, () => scriptedEnv(env), plan)
  const group = await play(scripted, options)
  const [episode] = group.episodes
  if (episode === undefined) throw new Error(JSON.stringify(group.failures))
  return { episode, env: scripted.source.opened[0]! }
}

/** A first prompt of exactly so many tokens of the char renderer. */
export function promptOf(tokens: number): Observation {
  return { messages: [{ role: 'user', content: 'x'.repeat(tokens - 3) }] }
}

/** A conversation with a tool `look`. */
export function withTool(tokens: number): Observation {
  return { ...promptOf(tokens), tools: charTools('look') }
}

/** Answers calls so that the next prompt has exactly so many tokens more than the present one and its reply. */
export function answerOf(tokens: number): (reply: AssistantMessage) => Step {
  return ({ toolCalls = [] }) =>
    toolCalls.length === 0
      ? { done: true }
      : {
          done: false,
          messages: toolCalls.map(({ id }) => ({
            role: 'tool',
            toolCallId: id,
            content: 'y'.repeat(tokens - 3),
          })),
        }
}

/** A call of `look` that has exactly so many tokens, its stop token included. */
export function callOf(tokens: number): string {
  return `${'z'.repeat(tokens - 10)}⟦look {}⟧`
}

/** The members' rewards, or why they have none. */
export function rewardsOf({ episodes }: PlayedGroup): readonly (number | string)[] {
  return episodes.map(({ reward }) => (isRewarded(reward) ? reward.reward : reward.unscored))
}

/** A sampler that fails at these calls, counted from 0. */
export function failingAt(...calls: readonly number[]): Sampler {
  return failingSampler(scriptedSampler(['done']), (index) =>
    calls.includes(index) ? new TypeError(`call ${index} broke`) : undefined,
  )
}

/** Text of a request's prompt, images as `<image>`. */
export function promptText({ prompt }: Pick<SampleRequest, 'prompt'>): string {
  const texts = prompt
    .chunks()
    .map((chunk) => (chunk.type === 'tokens' ? charText(chunk.ids) : '<image>'))
  return texts.join('')
}

/** Work that heeds nothing. */
export function never(): Promise<never> {
  return new Promise(() => {})
}
