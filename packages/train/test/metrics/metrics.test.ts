import { tokenPrompt } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { assembleEpisode } from '../../src/data/assemble.ts'
import { episodeMetrics } from '../../src/metrics/episodes.ts'
import {
  evenRanks,
  finiteMetrics,
  metricLabel,
  notFinite,
  spread,
} from '../../src/metrics/numbers.ts'
import { createBusyMeter, createLagMeter, createSpans } from '../../src/metrics/spans.ts'
import { updateMetrics } from '../../src/metrics/updates.ts'
import { playedGroup, playedReply, rewarded } from '../support/played.ts'

const prompt = (length: number) => tokenPrompt(Array.from({ length }, (_, index) => index))
const reply = (promptLength: number, sampled: number) =>
  playedReply(
    prompt(promptLength),
    Array.from({ length: sampled }, () => 1),
  )

const tagged = (tag: string) => playedGroup([{ reward: 1 }], { tags: [tag] })

/** What the metrics speak of: `all`, and tags. */
const scopes = (groups: Parameters<typeof episodeMetrics>[0]) =>
  new Set(Object.keys(episodeMetrics(groups)).map((name) => name.split('/')[1]))

describe('metrics of played groups', () => {
  test('statement 71: shares of mixed, all good and all bad groups', () => {
    const groups = [
      rewarded(1, 0),
      rewarded(1, 1),
      rewarded(0, 0),
      rewarded(0.5, 0.5),
      rewarded(0.4),
    ]
    expect(episodeMetrics(groups)).toMatchObject({
      'env/all/by_group/frac_mixed': 0.2,
      'env/all/by_group/frac_all_good': 0.4,
      'env/all/by_group/frac_all_bad': 0.4,
    })
    expect(episodeMetrics([])).toMatchObject({
      'env/all/by_group/frac_mixed': 0,
      'env/all/by_group/frac_all_good': 0,
      'env/all/by_group/frac_all_bad': 0,
      'env/all/total_episodes': 0,
    })
  })

  test('statement 72: tokens per reply, replies per episode, and the mean reward, of a tag', () => {
    const math = playedGroup(
      [
        { reward: 1, replies: [reply(3, 2)] },
        { reward: 0.5, replies: [reply(3, 4), reply(8, 1)] },
      ],
      { tags: ['math'] },
    )
    const other = playedGroup([{ reward: 0, replies: [reply(1, 1)] }], { tags: ['code'] })
    const metrics = episodeMetrics([math, other])
    expect(metrics['env/math/sampled_tokens_per_reply']).toBeCloseTo(2.3333333, 6)
    expect(metrics['env/math/prompt_tokens_per_reply']).toBeCloseTo(4.6666667, 6)
    expect(metrics).toMatchObject({
      'env/math/replies_per_episode': 1.5,
      'env/math/reward/total': 0.75,
      'env/math/total_episodes': 2,
      'env/math/total_sampled_tokens': 7,
      'env/math/total_prompt_tokens': 14,
    })
  })

  test('statement 73: a tag that every group has tells nothing; two that differ are both shown', () => {
    expect(scopes([tagged('math'), tagged('math')])).toEqual(new Set(['all']))
    expect(scopes([tagged('math'), tagged('code')])).toEqual(new Set(['all', 'math', 'code']))
  })

  test('a tag named all changes nothing, and tags that are written alike in metrics are one', () => {
    const tags = [['all'], ['s 1'], ['s_1', 's 1'], []]
    const groups = tags.map((each, reward) => playedGroup([{ reward }], { tags: each }))
    expect(scopes(groups)).toEqual(new Set(['all', 's_1']))
    expect(episodeMetrics(groups)).toMatchObject({
      'env/all/reward/total': 1.5,
      'env/all/total_episodes': 4,
      'env/s_1/reward/total': 1.5,
      'env/s_1/total_episodes': 2,
    })
  })

  test('statement 74: how episodes ended is a rate over all of them', () => {
    const completed = { reward: 1 }
    const cut = { reward: 0, end: { kind: 'cut', by: 'episode_tokens' } } as const
    expect(episodeMetrics([playedGroup([completed, completed, completed, cut])])).toMatchObject({
      'env/all/stop/completed': 0.75,
      'env/all/stop/episode_tokens': 0.25,
    })
  })

  test('statement 75: tags stay with their groups, constant ones and all', () => {
    const groups = [
      playedGroup([{ reward: 1 }, { reward: 1 }], { tags: ['math'] }),
      playedGroup([{ reward: 1 }, { reward: 0 }], { tags: ['code'] }),
      playedGroup([{ reward: 0.1 }, { reward: 0 }], { tags: ['chat'] }),
    ]
    expect(episodeMetrics(groups)).toMatchObject({
      'env/code/reward/total': 0.5,
      'env/chat/reward/total': 0.05,
      'env/math/reward/total': 1,
    })
  })

  test('F26: the mean reward is shown with and without unscored episodes, and scores say how many are missing', () => {
    const broken = { scores: { answer: { unscored: 'the judge was down' } } } as const
    const right = { reward: 1, scores: { answer: { value: 1 } } } as const
    const groups = [playedGroup([right, right, right, right, right, right, broken, broken])]
    expect(episodeMetrics(groups)).toMatchObject({
      'env/all/reward/total': 1,
      'env/all/reward/with_unscored_as_zero': 0.75,
      'env/all/reward/unscored_frac': 0.25,
      'env/all/score/answer': 1,
      'env/all/score/answer/unscored_frac': 0.25,
    })
  })

  test('numbers of a play are averaged over the episodes that have them', () => {
    const group = playedGroup([
      { reward: 0, metrics: { tool_calls: 2, depth: 4 } },
      { reward: 1, metrics: { tool_calls: 4 } },
    ])
    expect(episodeMetrics([group])).toMatchObject({ 'env/all/tool_calls': 3, 'env/all/depth': 4 })
  })
})

describe('metrics of updates', () => {
  const data = [
    ...assembleEpisode({ replies: [playedReply([1, 2], [3, 4], [-1, -2])] }, 0.5),
    ...assembleEpisode({ replies: [playedReply([5], [6], [-3]), playedReply([7], [8], [-2])] }, -1),
  ]
  const result = {
    logprobs: [[0, -1, -2.5], [-3], [-2]].map((each) => Float32Array.from(each)),
    loss: 1.25,
    metrics: { grad_norm: 2 },
  }

  test('count what was trained, and tell loss, gap and surprisal', () => {
    expect(updateMetrics([{ data, result }], { name: 'importance_sampling' })).toEqual({
      'data/datums': 3,
      'data/tokens': 5,
      'data/splits': 1,
      'data/trained_tokens': 4,
      'learner/grad_norm': 2,
      'optim/loss': 1.25,
      'optim/loss_per_token': 0.3125,
      'optim/kl_sample_train_v1': 0.125,
      'optim/kl_sample_train_v2': 0.03125,
      'optim/logprob_diff_mean': 0.125,
      'optim/logprob_diff_max': 0.5,
      'optim/entropy': 2,
    })
  })

  test('tell how many ratios a clipping loss clipped', () => {
    expect(updateMetrics([{ data, result }], { name: 'ppo' })['optim/clipped_frac']).toBe(0)
    const narrow = { name: 'ppo', clipLow: 0.999, clipHigh: 1.001 } as const
    // The one token that fell has a positive advantage: the minimum is the unclipped term.
    expect(updateMetrics([{ data, result }], narrow)['optim/clipped_frac']).toBe(0)
    const risen = {
      ...result,
      logprobs: [[0, -1, -1.5], [-3], [-2]].map((each) => Float32Array.from(each)),
    }
    expect(updateMetrics([{ data, result: risen }], narrow)['optim/clipped_frac']).toBe(0.25)
  })

  test('of no data are counts alone', () => {
    expect(updateMetrics([], { name: 'ppo' })).toEqual({
      'data/datums': 0,
      'data/tokens': 0,
      'data/splits': 0,
      'data/trained_tokens': 0,
    })
  })
})

describe('numbers for records', () => {
  test('statement 76: most, least and mean', () => {
    expect(spread('sampling_client/step', [3, 5, 4])).toEqual({
      'sampling_client/step_max': 5,
      'sampling_client/step_min': 3,
      'sampling_client/step_mean': 4,
    })
    expect(spread('time/sampling_time', [1, 4, 1])).toEqual({
      'time/sampling_time_max': 4,
      'time/sampling_time_min': 1,
      'time/sampling_time_mean': 2,
    })
    expect(spread('x', [])).toEqual({})
  })

  test('statement 78: shown are places evenly spread over the ranks', () => {
    expect(evenRanks([0, 3, 1, 2, 5, 4], 4)).toEqual([0, 2, 1, 4])
    expect(evenRanks([2, 1], 4)).toEqual([1, 0])
    expect(evenRanks([2, 1, 3], 1)).toEqual([1])
  })

  test('statement 79: a number that is not finite is null, with a flag', () => {
    const metrics = finiteMetrics({ loss: Number.NaN, lr: 1, worst: Number.NEGATIVE_INFINITY })
    expect(metrics).toEqual({
      loss: null,
      'loss:not_finite': 1,
      lr: 1,
      worst: null,
      'worst:not_finite': 1,
    })
    expect(notFinite(metrics)).toEqual(['loss', 'worst'])
    expect(JSON.parse(JSON.stringify(metrics))).toEqual(metrics)
  })

  test.each([
    ['math/500 v2', 'math_500_v2'],
    ['', 'unnamed'],
    ['..', 'unnamed'],
    ['gpqa-diamond.1', 'gpqa-diamond.1'],
  ])('statement 99: %j as a label is %j', (name, label) => {
    expect(metricLabel(name)).toBe(label)
  })
})

describe('watches', () => {
  test('statement 77: a span seen once is a time; seen twice it is total, count, mean and most', async () => {
    const clock = simulatedClock()
    const spans = createSpans(clock)
    await clock.drive(spans.measure('x', () => clock.sleep(1_000)))
    expect(spans.take()).toEqual({ 'time/x': 1 })
    await clock.drive(spans.measure('x', () => clock.sleep(1_000)))
    await clock.drive(spans.measure('x', () => clock.sleep(3_000)))
    expect(spans.take()).toEqual({
      'time/x:total': 4,
      'time/x:count': 2,
      'time/x:mean': 2,
      'time/x:max': 3,
    })
    expect(spans.take()).toEqual({})
  })

  test('a span is noted though its work fails', async () => {
    const clock = simulatedClock()
    const spans = createSpans(clock)
    const work = async () => {
      await clock.sleep(500)
      throw new Error('no')
    }
    await expect(clock.drive(spans.measure('x', work))).rejects.toThrow('no')
    expect(spans.take()).toEqual({ 'time/x': 0.5 })
  })

  test('overlapping work is busy once, also across readings', async () => {
    const clock = simulatedClock()
    const meter = createBusyMeter(clock)
    meter.enter()
    await clock.advance(1_000)
    meter.enter()
    await clock.advance(1_000)
    meter.leave()
    expect(meter.take()).toBe(2)
    await clock.advance(500)
    meter.leave()
    await clock.advance(9_000)
    expect(meter.take()).toBe(0.5)
  })

  test('the lag of the event loop is how late timers come', async () => {
    const clock = simulatedClock()
    let late = 0
    const busy = {
      now: () => clock.now(),
      sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms + late, signal),
    }
    const meter = createLagMeter(busy)
    await clock.advance(50)
    late = 30
    await clock.advance(130)
    expect(meter.take().max).toBe(30)
    meter.stop()
    expect(meter.take()).toEqual({ max: 0, mean: 0 })
    expect(clock.sleeping).toBe(0)
  })
})
