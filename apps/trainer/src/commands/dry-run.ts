import type { Env, Episode, GroupPlan, Limits, Renderer } from '@tiltyard/core'
import type { RolloutEvaluation, Training } from '@tiltyard/train'
import { InvalidArgumentError } from 'commander'

/** Dollars for a million tokens, as a service lists them for a model. */
export interface Prices {
  /** Prompts read while sampling. */
  readonly prefill: number
  readonly sample: number
  /** Tokens of training data. */
  readonly train: number
}

export const PRICES_HELP = "with --dry-run: the service's, in dollars for a million tokens"

/** Three numbers with commas between, from the command line. */
export function readPrices(text: string): Prices {
  const numbers = text.split(',').map(Number)
  const [prefill, sample, train] = numbers
  if (numbers.length !== 3 || !numbers.every((price) => price >= 0))
    throw new InvalidArgumentError('expected three numbers, such as 0.1,0.3,0.3')
  return { prefill: prefill!, sample: sample!, train: train! }
}

/** What a training would play, and the most that it can take. */
export interface Estimate {
  readonly steps: number
  readonly groups: number
  readonly episodes: number
  /** Episodes of all evaluations together. */
  readonly evaluationEpisodes: number
  readonly tasks: number
  /** Tokens of the tasks' first prompts. */
  readonly promptTokens: { readonly least: number; readonly mean: number; readonly most: number }
  /** Tokens of everything, were each episode as long as its limits allow; undefined: no limit bounds it. */
  readonly atMost:
    | { readonly prefill: number; readonly sample: number; readonly train: number }
    | undefined
  /** The limits that a bound lacks. */
  readonly lacking: readonly (keyof Limits)[]
}

/** Steps that an endless dataset is asked for when the recipe says none. */
const DEFAULT_STEPS = 1

/**
 * Opens the tasks that a training would play and renders their first prompts. Nothing is sampled, and nothing is asked of the
 * backend: no key is needed. A task that an agent plays by itself has no first prompt to count.
 */
export async function estimateTraining(
  { config }: Training,
  signal: AbortSignal,
): Promise<Estimate> {
  const { dataset, renderer, seed = 0, limits = {}, evaluations = [], evalEvery = 20 } = config
  const steps = config.steps ?? dataset.batches ?? DEFAULT_STEPS
  const plans: GroupPlan[] = []
  for (let step = 0; step < steps; step += 1)
    plans.push(...((await dataset.batch(step, seed)) ?? []))
  const evaluated: { readonly plan: GroupPlan; readonly times: number; readonly limits: Limits }[] =
    []
  for (const evaluation of evaluations) {
    if (!('dataset' in evaluation)) continue
    const times = timesOf(evaluation, evalEvery, steps)
    for (const plan of await plansOf(evaluation, seed))
      evaluated.push({ plan, times, limits: evaluation.limits ?? limits })
  }
  const lengths = await promptLengths(
    [...plans, ...evaluated.map(({ plan }) => plan)],
    renderer,
    signal,
  )
  const episodes = plans.reduce((sum, { size }) => sum + size, 0)
  const evaluationEpisodes = evaluated.reduce((sum, { plan, times }) => sum + plan.size * times, 0)
  const trained = bound(limits, renderer)
  const played = evaluated.map(({ limits: own, plan, times }) => ({
    most: bound(own, renderer),
    episodes: plan.size * times,
  }))
  const parts = [{ most: trained, episodes }, ...played]
  const total = (of: 'prefill' | 'sample') =>
    parts.reduce((sum, part) => sum + (part.most[of] ?? NaN) * part.episodes, 0)
  const lacking = [...new Set(parts.flatMap(({ most }) => most.lacking))]
  return {
    steps,
    groups: plans.length,
    episodes,
    evaluationEpisodes,
    tasks: lengths.length,
    promptTokens: {
      least: Math.min(...lengths),
      mean: lengths.reduce((sum, length) => sum + length, 0) / lengths.length,
      most: Math.max(...lengths),
    },
    atMost:
      lacking.length > 0
        ? undefined
        : { prefill: total('prefill'), sample: total('sample'), train: trained.train! * episodes },
    lacking,
  }
}

/** Evaluations of a run: before the first step, after every so many, and after the last. */
function timesOf({ every }: RolloutEvaluation, evalEvery: number, steps: number): number {
  const between = every ?? evalEvery
  if (between === 0) return 0
  return Math.floor(steps / between) + 1 + (steps % between === 0 ? 0 : 1)
}

async function plansOf({ dataset }: RolloutEvaluation, seed: number): Promise<GroupPlan[]> {
  const plans: GroupPlan[] = []
  for (let batch = 0; batch < (dataset.batches ?? 1); batch += 1)
    plans.push(...((await dataset.batch(batch, seed)) ?? []))
  return plans
}

/** Tokens of the first prompt of each task. */
async function promptLengths(
  plans: readonly GroupPlan[],
  renderer: Renderer,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const tasks = new Map(plans.map((plan) => [plan.task.fingerprint, plan]))
  const lengths: number[] = []
  for (const { source, task, seed } of tasks.values()) {
    const opened = await source.open(task, { seed, signal })
    try {
      if (isEnv(opened)) lengths.push(renderer.prompt(await opened.start(signal)).length)
    } finally {
      await opened.end({ kind: 'cancelled' })
      await opened.close()
    }
  }
  return lengths
}

function isEnv(opened: Env | Episode): opened is Env {
  return 'start' in opened
}

interface Bound {
  readonly prefill: number | undefined
  readonly sample: number | undefined
  readonly train: number | undefined
  readonly lacking: readonly (keyof Limits)[]
}

/** The most tokens that one episode can take: each reply reads the whole conversation, which the window bounds. */
function bound(limits: Limits, renderer: Renderer): Bound {
  const { replies, replyTokens, sampledTokens = Infinity } = limits
  const window = Math.min(limits.contextWindow ?? Infinity, limits.episodeTokens ?? Infinity)
  const lacking: (keyof Limits)[] = []
  if (replies === undefined) lacking.push('replies')
  if (replyTokens === undefined && sampledTokens === Infinity) lacking.push('replyTokens')
  if (window === Infinity) lacking.push('contextWindow')
  if (lacking.length > 0)
    return { prefill: undefined, sample: undefined, train: undefined, lacking }
  const { extendsToolLoop, extendsUserTurn } = renderer.history
  // A sequence goes on as long as the next prompt starts with what was sampled.
  const sequences = !extendsToolLoop
    ? replies!
    : extendsUserTurn
      ? 1
      : Math.min(limits.turns ?? Infinity, replies!)
  return {
    prefill: replies! * window,
    sample: Math.min(replies! * (replyTokens ?? Infinity), sampledTokens, replies! * window),
    train: sequences * window,
    lacking,
  }
}

/** The estimate in plain words. */
export function estimateLines(estimate: Estimate, prices: Prices | undefined): readonly string[] {
  const { steps, groups, episodes, evaluationEpisodes, tasks, promptTokens, atMost, lacking } =
    estimate
  const head = [
    `${count(steps)} steps: ${count(groups)} groups, ${count(episodes)} episodes; evaluations: ${count(evaluationEpisodes)} episodes; ${count(tasks)} tasks in all`,
    `first prompts: ${count(promptTokens.least)} to ${count(promptTokens.most)} tokens, ${count(promptTokens.mean)} on average`,
  ]
  if (atMost === undefined)
    return [...head, `no upper bound: the recipe's limits lack ${lacking.join(', ')}`]
  const kinds = ['prefill', 'sample', 'train'] as const
  const bounds = kinds.map((kind) => {
    const tokens = `at most ${count(atMost[kind])} tokens`
    return prices === undefined
      ? `${kind}: ${tokens}`
      : `${kind}: ${tokens}, $${dollars(atMost[kind], prices[kind])}`
  })
  if (prices === undefined)
    return [
      ...head,
      ...bounds,
      'with --prices <prefill,sample,train>, in dollars for a million tokens as the service lists them: the cost too',
    ]
  const cost = kinds.reduce((sum, kind) => sum + (atMost[kind] * prices[kind]) / 1e6, 0)
  return [...head, ...bounds, `upper bound of the cost: $${cost.toFixed(2)}`]
}

function dollars(tokens: number, price: number): string {
  return ((tokens * price) / 1e6).toFixed(2)
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
