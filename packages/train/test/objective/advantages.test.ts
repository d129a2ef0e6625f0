import { describe, expect, test } from 'vitest'

import { judgeGroup, type JudgedGroup } from '../../src/data/prepare.ts'
import { groupAdvantages, isConstant } from '../../src/objective/advantages.ts'
import { playedGroup, playedReply, rewarded } from '../support/played.ts'

/** Advantage of each member, or why there is none. */
const verdicts = ({ verdicts: all }: JudgedGroup) =>
  all.map((verdict) => ('advantage' in verdict ? verdict.advantage : verdict.untrained))

const close = (values: readonly number[]) =>
  values.map((value) => expect.closeTo(value, 6) as number)

describe('group-centred advantages', () => {
  test.each([
    ['34', [1, 0, 0, 1], [0.5, -0.5, -0.5, 0.5]],
    ['35', [1, 0, 0], [0.6666667, -0.3333333, -0.3333333]],
    ['36', [0, 0, 0, 1], [-0.25, -0.25, -0.25, 0.75]],
    ['37', [1.0, 0.9, 0.0, -0.1], [0.55, 0.45, -0.45, -0.55]],
    ['38', [-0.1, 0.7], [-0.4, 0.4]],
  ])('statement %s: rewards %j give %j', (_, rewards, advantages) => {
    expect(groupAdvantages(rewards)).toEqual(close(advantages))
  })

  test('statement 38: a group of one has advantage 0 and is constant', () => {
    expect(groupAdvantages([1])).toEqual([0])
    expect(isConstant([1])).toBe(true)
    expect(judgeGroup(rewarded(1)).untrained).toBe('alone')
  })

  test('leave-one-out compares each with the mean of the others', () => {
    expect(groupAdvantages([1, 0, 0], { baseline: 'leave_one_out' })).toEqual([1, -0.5, -0.5])
    expect(groupAdvantages([3, 5], { baseline: 'leave_one_out' })).toEqual([-2, 2])
    expect(groupAdvantages([7], { baseline: 'leave_one_out' })).toEqual([0])
  })

  test('without a baseline the reward is the advantage', () => {
    expect(groupAdvantages([1, 1, 0], { baseline: 'none' })).toEqual([1, 1, 0])
    expect(judgeGroup(rewarded(1, 1), { baseline: 'none' }).untrained).toBeUndefined()
  })

  test('scaled by the population standard deviation, which a constant group has none of', () => {
    expect(groupAdvantages([1, 0, 0, 1], { scale: 'std' })).toEqual([1, -1, -1, 1])
    expect(groupAdvantages([0, 0, 0, 1], { scale: 'std' })).toEqual(
      close([-0.5773503, -0.5773503, -0.5773503, 1.7320508]),
    )
    expect(groupAdvantages([2, 2], { scale: 'std' })).toEqual([0, 0])
    expect(groupAdvantages([2, 2], { baseline: 'none', scale: 'std' })).toEqual([0, 0])
  })

  test('rewards that are equal as float32 are constant, though float64 tells them apart', () => {
    expect(isConstant([0.1 + 0.2, 0.3])).toBe(true)
    expect(isConstant([0.3, 0.3001])).toBe(false)
    expect(isConstant([])).toBe(true)
  })
})

describe('a group on its way to training', () => {
  test('statement 39: of [1, 1], [0, 1] and [0, 0] only the second is kept', () => {
    const groups = [rewarded(1, 1), rewarded(0, 1), rewarded(0, 0)]
    expect(groups.map((group) => judgeGroup(group).untrained)).toEqual([
      'constant',
      undefined,
      'constant',
    ])
  })

  test('statement 40: when all groups are constant none is kept', () => {
    const groups = [rewarded(1, 1), rewarded(0, 0)]
    expect(groups.map((group) => judgeGroup(group).untrained)).toEqual(['constant', 'constant'])
  })

  test('constant groups train with advantage 0 when they are kept', () => {
    expect(verdicts(judgeGroup(rewarded(1, 1), { keepConstantGroups: true }))).toEqual([0, 0])
  })

  test('statement 41: integer rewards are rewards like others', () => {
    expect(verdicts(judgeGroup(rewarded(1, 0)))).toEqual([0.5, -0.5])
  })

  test('statement 41, F32: a reward that is not finite is unscored; the others are centred without it', () => {
    expect(verdicts(judgeGroup(rewarded(1, Number.NaN, 0)))).toEqual([0.5, 'unscored', -0.5])
    expect(judgeGroup(rewarded(Number.NaN, Number.NaN, 1)).untrained).toBe('alone')
    expect(judgeGroup(rewarded(Number.POSITIVE_INFINITY, 1, 0)).verdicts[0]).toMatchObject({
      untrained: 'unscored',
    })
  })

  test('unscored members are left out, and a group without any reward is unscored', () => {
    expect(verdicts(judgeGroup(playedGroup([{ reward: 1 }, {}, { reward: 0 }])))).toEqual([
      0.5,
      'unscored',
      -0.5,
    ])
    expect(judgeGroup(playedGroup([{}, {}])).untrained).toBe('unscored')
    expect(judgeGroup(playedGroup([])).untrained).toBe('unscored')
  })

  test('F36: a member without a token to train is left out of the mean and reported', () => {
    const silent = { reward: 100, replies: [playedReply([1], [2], [-1], { trained: false })] }
    const group = playedGroup([silent, { reward: 1 }, { reward: 1 }])
    expect(verdicts(judgeGroup(group))).toEqual(['no_tokens', 'constant', 'constant'])
    expect(verdicts(judgeGroup(group, { keepConstantGroups: true }))).toEqual(['no_tokens', 0, 0])
  })

  test('F34: a group of which nothing may train is left out, with the reason', () => {
    const silent = (reward: number) => ({
      reward,
      replies: [playedReply([1], [2], [-1], { trained: false })],
    })
    const judged = judgeGroup(playedGroup([silent(1), silent(0)]))
    expect(verdicts(judged)).toEqual(['no_tokens', 'no_tokens'])
    expect(judged.untrained).toBe('no_tokens')
  })

  test('statement 47: with withoutTokens "keep" the reward of an episode that sampled nothing counts for the mean', () => {
    const overflow = { reward: -0.1, replies: [] }
    const judged = judgeGroup(playedGroup([overflow, { reward: 0.7 }]), { withoutTokens: 'keep' })
    expect(verdicts(judged)).toEqual(['no_tokens', expect.closeTo(0.4, 10)])
  })

  test('F33: an episode counts once for the baseline, whatever number of data it becomes', () => {
    const whole = { reward: 1, replies: [playedReply([1], [2, 3])] }
    const split = { reward: 1, replies: [playedReply([1], [2]), playedReply([9], [3])] }
    const others = [{ reward: 0 }, { reward: 0 }]
    expect(verdicts(judgeGroup(playedGroup([split, ...others])))).toEqual(
      verdicts(judgeGroup(playedGroup([whole, ...others]))),
    )
  })

  test('F31: advantages go by the group, whatever the prompts are, in whatever order members come, with one of them lost', () => {
    const members = [1, 0, 0].map((reward, member) => ({
      member,
      reward,
      replies: [playedReply([11 + member, 90 + member], [2])],
    }))
    const other = [5, 0, 1, 0].map((reward, member) => ({ member, reward }))
    for (const order of [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ]) {
      const shuffled = playedGroup(
        order.map((member) => members[member]!),
        { size: 4, group: 1 },
      )
      const found = [playedGroup(other, { group: 0 }), shuffled].map((group) => judgeGroup(group))
      const byMember = new Map(
        order.map((member, place) => [member, verdicts(found[1]!)[place]] as const),
      )
      expect([0, 1, 2].map((member) => byMember.get(member))).toEqual(
        close([0.6666667, -0.3333333, -0.3333333]),
      )
    }
  })

  test('F2: an episode whose ids and log-probabilities differ in number is refused by name', () => {
    const broken = { reward: 1, replies: [playedReply([1], [2, 3], [-1])] }
    const judged = judgeGroup(playedGroup([broken, { reward: 1 }, { reward: 0 }]))
    expect(verdicts(judged)).toEqual([
      'bad data: reply 0 has 2 ids and 1 log-probabilities',
      0.5,
      -0.5,
    ])
  })

  test('F32: a log-probability that is not finite refuses its episode', () => {
    const broken = { reward: 1, replies: [playedReply([1], [2, 3], [-1, Number.NaN])] }
    const judged = judgeGroup(playedGroup([broken, { reward: 1 }, { reward: 0 }]))
    expect(verdicts(judged)[0]).toBe('bad data: log-probability 1 of reply 0 is NaN')
  })

  test('F23: a dropped group trains nothing, and says why', () => {
    const group = playedGroup([{ reward: 1 }, { reward: 0 }], { dropped: 'no retries left' })
    expect(verdicts(judgeGroup(group))).toEqual(['no retries left', 'no retries left'])
    expect(judgeGroup(group).untrained).toBe('no retries left')
  })
})
