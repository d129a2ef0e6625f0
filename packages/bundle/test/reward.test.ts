import { ConfigError, type EpisodeOutcome, type Score } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import {
  customRule,
  namedStep,
  onlyStep,
  productOf,
  ranking,
  rewardRule,
  threshold,
  weightedSum,
} from '../src/index.ts'

function outcome(scores: Readonly<Record<string, number | Score>>): EpisodeOutcome {
  return {
    end: { kind: 'completed' },
    scores: Object.fromEntries(
      Object.entries(scores).map(([step, score]) => [
        step,
        typeof score === 'number' ? { value: score } : score,
      ]),
    ),
    metrics: {},
  }
}

const unscored = { unscored: 'judge is down' }
const both = outcome({ db: 1, told: 0.5 })

describe('reward rules', () => {
  test('E26: the only step is the reward', () => {
    expect(onlyStep().reward(outcome({ db: 0.25 }))).toEqual({ reward: 0.25 })
    expect(() => onlyStep().check(['db'])).not.toThrow()
  })

  test('E26: several steps and none named is an error that lists them', () => {
    expect(() => onlyStep().check(['db', 'told'])).toThrow(ConfigError)
    expect(() => onlyStep().check(['db', 'told'])).toThrow(/several scoring steps \(db, told\)/)
    expect(onlyStep().reward(both)).toHaveProperty('unscored')
  })

  test('a named step', () => {
    expect(namedStep('told').reward(both)).toEqual({ reward: 0.5 })
    expect(() => namedStep('tolt').check(['db', 'told'])).toThrow(
      'unknown scoring step "tolt"; did you mean "told"? There is db, told',
    )
  })

  test('a weighted sum: Σ weight · score', () => {
    expect(weightedSum({ db: 2, told: 1 }).reward(both)).toEqual({ reward: 2.5 })
    expect(weightedSum({ db: 0.5, told: 0 }).reward(outcome({ db: 1, told: unscored }))).toEqual({
      reward: 0.5,
    })
    expect(() => weightedSum({ db: 0 }).check(['db'])).toThrow('no step has a weight above 0')
    expect(() => weightedSum({ db: -1 }).check(['db'])).toThrow('the weight of "db" is -1')
    expect(() => weightedSum({ db: 1, x: 1 }).check(['db'])).toThrow('unknown scoring step "x"')
  })

  test('a product', () => {
    expect(productOf(['db', 'told']).reward(both)).toEqual({ reward: 0.5 })
    expect(productOf(['db', 'told']).reward(outcome({ db: 0, told: 1 }))).toEqual({ reward: 0 })
  })

  test('a threshold: 1 from there on, else 0', () => {
    const rule = threshold('told', 0.5)
    expect(rule.reward(both)).toEqual({ reward: 1 })
    expect(rule.reward(outcome({ told: 0.49 }))).toEqual({ reward: 0 })
  })

  test('a rule of one’s own', () => {
    const rule = customRule('best', ['db', 'told'], ({ db, told }) => Math.max(db, told))
    expect(rule.reward(both)).toEqual({ reward: 1 })
    expect(() => rule.check(['db'])).toThrow('unknown scoring step "told"')
    const broken = customRule('broken', ['db'], ({ db }) => 0 / (db - 1))
    expect(broken.reward(outcome({ db: 1 }))).toEqual({ unscored: 'the reward rule gave NaN' })
  })

  test('unscored is never zero: one unscored or missing step leaves the episode without a reward', () => {
    const rules = [
      namedStep('db'),
      onlyStep(),
      weightedSum({ db: 1 }),
      productOf(['db']),
      threshold('db', 0),
      customRule('own', ['db'], ({ db }) => db),
    ]
    for (const rule of rules) {
      expect(rule.reward(outcome({ db: unscored }))).toEqual({ unscored: 'db: judge is down' })
      expect(rule.reward(outcome({}))).toHaveProperty('unscored')
    }
  })

  test('as data: a step, weighted by the steps’ own weights, a sum, a product, a threshold, or the only step', () => {
    const steps = [
      { name: 'db', weight: 1 },
      { name: 'told', weight: 0.5 },
    ]
    const reward = (spec: Parameters<typeof rewardRule>[0]) => rewardRule(spec, steps).reward(both)
    expect(reward('db')).toEqual({ reward: 1 })
    expect(reward('weighted')).toEqual({ reward: 1.25 })
    expect(reward({ weighted: { told: 2 } })).toEqual({ reward: 1 })
    expect(reward({ product: ['db', 'told'] })).toEqual({ reward: 0.5 })
    expect(reward({ threshold: { step: 'told', least: 0.6 } })).toEqual({ reward: 0 })
    expect(() => rewardRule(undefined, steps).check(['db', 'told'])).toThrow(/db, told/)
  })
})

describe('ranking in a group', () => {
  const rule = ranking(namedStep('db'))

  test('1 for the best, 0 for the worst, evenly between', () => {
    const rewards = rule.rewards([5, -1, 2].map((db) => outcome({ db })))
    expect(rewards).toEqual([{ reward: 1 }, { reward: 0 }, { reward: 0.5 }])
  })

  test('equal ones share their ranks’ mean; a group of equals gets a half each', () => {
    expect(rule.rewards([1, 1, 0].map((db) => outcome({ db })))).toEqual([
      { reward: 0.75 },
      { reward: 0.75 },
      { reward: 0 },
    ])
    expect(rule.rewards([1, 1].map((db) => outcome({ db })))).toEqual([
      { reward: 0.5 },
      { reward: 0.5 },
    ])
  })

  test('unscored members stay unscored and do not count', () => {
    expect(
      rule.rewards([outcome({ db: 1 }), outcome({ db: unscored }), outcome({ db: 0 })]),
    ).toEqual([{ reward: 1 }, { unscored: 'db: judge is down' }, { reward: 0 }])
  })

  test('it checks the steps of the rule that it ranks by', () => {
    expect(() => rule.check(['told'])).toThrow(ConfigError)
  })
})
