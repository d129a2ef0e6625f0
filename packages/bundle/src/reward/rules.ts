import {
  ConfigError,
  type EpisodeOutcome,
  isScored,
  nearest,
  type Reward,
  type RewardRule,
  unknownName,
} from '@tiltyard/core'

/** The score of the step with this name. */
export function namedStep(step: string): RewardRule {
  return rule({
    name: step,
    check: (steps) => checkNames([step], steps),
    reward: (outcome) => withScores(outcome, [step], ([score]) => score!),
  })
}

/** The score of the task's one step. With several steps, `check` says which there are. */
export function onlyStep(): RewardRule {
  return rule({
    name: 'only step',
    check(steps) {
      if (steps.length === 1) return
      throw mistake(
        steps.length === 0
          ? 'the task records no scoring step'
          : `the task records several scoring steps (${steps.join(', ')}); name the one that is the reward, or a rule that joins them`,
      )
    },
    reward(outcome) {
      const [step, ...others] = Object.keys(outcome.scores)
      if (step === undefined || others.length > 0)
        return { unscored: `${others.length === 0 ? 'no' : 'more than one'} scoring step` }
      return withScores(outcome, [step], ([score]) => score!)
    },
  })
}

/** Σ weight · score over the named steps. A step of weight 0 is asked for nothing. */
export function weightedSum(weights: Readonly<Record<string, number>>): RewardRule {
  const entries = Object.entries(weights).filter(([, weight]) => weight !== 0)
  const names = entries.map(([name]) => name)
  return rule({
    name: entries.map(([name, weight]) => `${weight} ${name}`).join(' + ') || 'nothing',
    check(steps) {
      const broken = Object.entries(weights).find(
        ([, weight]) => !(weight >= 0 && weight < Infinity),
      )
      if (broken !== undefined)
        throw mistake(
          `the weight of "${broken[0]}" is ${broken[1]}; expected a number of at least 0`,
        )
      if (names.length === 0) throw mistake('no step has a weight above 0')
      checkNames(Object.keys(weights), steps)
    },
    reward: (outcome) =>
      withScores(outcome, names, (scores) =>
        scores.reduce((sum, score, index) => sum + entries[index]![1] * score, 0),
      ),
  })
}

/** The product of the named steps' scores: all must be good. */
export function productOf(names: readonly string[]): RewardRule {
  return rule({
    name: names.join(' × '),
    check: (steps) => checkNames(names, steps),
    reward: (outcome) =>
      withScores(outcome, names, (scores) => scores.reduce((product, score) => product * score, 1)),
  })
}

/** 1 when the step's score is at least `least`, else 0. */
export function threshold(step: string, least: number): RewardRule {
  return rule({
    name: `${step} ≥ ${least}`,
    check: (steps) => checkNames([step], steps),
    reward: (outcome) => withScores(outcome, [step], ([score]) => (score! >= least ? 1 : 0)),
  })
}

/**
 * A rule of one's own over the scores of the steps that it names. It is not asked when one of them is unscored: the reward
 * is unscored then, as with every other rule.
 */
export function customRule<const Step extends string>(
  name: string,
  steps: readonly Step[],
  reward: (scores: Readonly<Record<Step, number>>, outcome: EpisodeOutcome) => number,
): RewardRule {
  return rule({
    name,
    check: (recorded) => checkNames(steps, recorded),
    reward: (outcome) =>
      withScores(outcome, steps, (scores) =>
        reward(
          Object.fromEntries(steps.map((step, index) => [step, scores[index]!])) as Record<
            Step,
            number
          >,
          outcome,
        ),
      ),
  })
}

function rule(members: Omit<RewardRule, 'specVersion'>): RewardRule {
  return { specVersion: 'reward-rule/1', ...members }
}

/** The rule's result over the steps' scores; the first unscored one makes the whole unscored. */
function withScores(
  { scores }: EpisodeOutcome,
  steps: readonly string[],
  result: (values: readonly number[]) => number,
): Reward {
  const values: number[] = []
  for (const step of steps) {
    const score = scores[step]
    if (score === undefined) return { unscored: `the step "${step}" was not recorded` }
    if (!isScored(score)) return { unscored: `${step}: ${score.unscored}` }
    values.push(score.value)
  }
  const reward = result(values)
  return Number.isFinite(reward) ? { reward } : { unscored: `the reward rule gave ${reward}` }
}

function checkNames(names: readonly string[], steps: readonly string[]): void {
  const unknown = names.filter((name) => !steps.includes(name))
  if (unknown.length === 0) return
  throw new ConfigError(
    'reward',
    unknown.map((name) => ({
      at: '',
      message: unknownStep(name, steps),
    })),
  )
}

/** Says which steps there are, also where one is near. */
function unknownStep(name: string, steps: readonly string[]): string {
  const message = unknownName('scoring step', name, steps)
  return nearest(name, steps) === undefined ? message : `${message} There is ${steps.join(', ')}`
}

function mistake(message: string): ConfigError {
  return new ConfigError('reward', [{ at: '', message }])
}
