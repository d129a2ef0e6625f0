/** Names of the metrics that the pages know. */
export const REWARD = 'env/all/reward/total'

export interface PlotPlan {
  readonly title: string
  /** Name of a metric and what its curve is called. */
  readonly curves: readonly (readonly [name: string, label: string])[]
}

const ends = 'env/all/stop/'

/** The plots of a run, of what it measures: those without any of their metrics are left out. */
export function plansFor(names: readonly string[]): readonly PlotPlan[] {
  const stops = names.filter((name) => name.startsWith(ends))
  const plans: PlotPlan[] = [
    { title: 'Reward', curves: [[REWARD, 'reward']] },
    { title: 'End reasons', curves: stops.map((name) => [name, name.slice(ends.length)] as const) },
    {
      title: 'Length of episodes, in tokens',
      curves: [
        ['env/all/sampled_tokens', 'sampled'],
        ['env/all/sampled_tokens_per_reply', 'sampled per reply'],
      ],
    },
    {
      title: 'Length of episodes, in turns',
      curves: [
        ['env/all/turns', 'turns'],
        ['env/all/replies_per_episode', 'replies'],
        ['env/all/tool_calls', 'tool calls'],
      ],
    },
    {
      title: 'KL, sampled to trained',
      curves: [
        ['optim/kl_sample_train_v1', 'v1'],
        ['optim/kl_sample_train_v2', 'v2'],
      ],
    },
    { title: 'Entropy', curves: [['optim/entropy', 'entropy']] },
    {
      title: 'Loss',
      curves: [
        ['train_mean_nll', 'loss'],
        ['optim/loss_per_token', 'loss per token'],
      ],
    },
    {
      title: 'Gradient norm',
      curves: [['learner/grad_norm', 'norm']],
    },
    {
      title: 'Seconds',
      curves: [
        ['time/total', 'step'],
        ['time/sampling', 'sampling'],
        ['time/learning', 'learning'],
        ['time/publish', 'publishing'],
      ],
    },
    {
      title: 'Tokens a second',
      curves: [
        ['rate/sampled_tokens', 'sampled'],
        ['rate/trained_tokens', 'trained'],
      ],
    },
  ]
  const known = new Set(names)
  return plans
    .map(({ title, curves }) => ({ title, curves: curves.filter(([name]) => known.has(name)) }))
    .filter(({ curves }) => curves.length > 0)
}

/** Causes for which something was played and not trained, as a step counts them. */
export const losses = [
  { name: 'rollout_errors/total', title: 'failures', filter: { end: 'failed' } },
  { name: 'rollout_errors/retries', title: 'retries', filter: { trained: 'retried' } },
  { name: 'groups/dropped', title: 'groups dropped', filter: { trained: 'dropped' } },
  { name: 'groups/constant', title: 'groups constant', filter: { trained: 'constant' } },
  { name: 'groups/alone', title: 'groups alone', filter: { trained: 'alone' } },
  { name: 'groups/stale', title: 'groups stale', filter: { trained: 'stale' } },
  { name: 'episodes/unscored', title: 'unscored', filter: { trained: 'unscored' } },
  { name: 'episodes/no_tokens', title: 'no tokens', filter: { trained: 'no_tokens' } },
  { name: 'episodes/bad_data', title: 'bad data', filter: { trained: 'bad data' } },
] as const
