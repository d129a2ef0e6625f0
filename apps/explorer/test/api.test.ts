import type { RunEvent, RunIndex } from '@tiltyard/core'
import { byteTokenizer } from '@tiltyard/testkit'
import { beforeAll, describe, expect, test } from 'vitest'

import * as answers from '../src/api/answers.ts'
import { CLIP_CHARS } from '../src/server/messages.ts'
import { explorer } from './support/ask.ts'
import {
  episodeEvent,
  episodeKey,
  indexOf,
  metricsEvent,
  scoreEvent,
  trainingEvent,
} from './support/events.ts'

const failed = {
  kind: 'failed',
  phase: 'tool',
  error: { name: 'Error', message: 'the desk burned' },
} as const
const long = 'word 😀 '.repeat(4_000)

const events: readonly RunEvent[] = [
  episodeEvent(),
  scoreEvent({}, 1),
  trainingEvent({}),
  episodeEvent({ member: 1 }, { end: failed, messages: [], replies: [], sequences: [], calls: [] }),
  episodeEvent({ member: 1, attempt: 1 }),
  scoreEvent({ member: 1, attempt: 1 }, 0),
  trainingEvent({ member: 1, attempt: 1 }, { untrained: 'stale', data: [] }),
  { type: 'group', key: groupKey(0), task: 'find-user', fingerprint: 'f0', members: 2 },
  episodeEvent({ group: 1 }, { task: 'other', messages: [{ role: 'user', content: long }] }),
  {
    type: 'group',
    key: groupKey(1),
    task: 'other',
    fingerprint: 'f1',
    members: 1,
    dropped: 'too few members',
  },
  metricsEvent(0),
  { type: 'step', step: 0, position: 1, totals: { episodes: 3 } },
  episodeEvent({ split: 'eval', evaluation: 'held-out', step: 1 }),
  metricsEvent(1),
  metricsEvent(1, { split: 'eval', evaluation: 'held-out', timing: {} }),
  { type: 'step', step: 1, position: 2, totals: { episodes: 6 } },
  {
    type: 'checkpoint',
    step: 2,
    name: 'last',
    training: { path: 'p', kind: 'training' },
    final: true,
  },
  { type: 'failure', step: 1, phase: 'train', error: { name: 'Error', message: 'no space' } },
]

function groupKey(group: number) {
  return { split: 'train', step: 0, group } as const
}

let index: RunIndex
let ask: ReturnType<typeof explorer>['ask']
beforeAll(async () => {
  index = await indexOf({ desk: events, 'a/../b': [] })
  ;({ ask } = explorer(index))
})
const id = 'train/step-0000/g0/m0/a0'

describe('runs', () => {
  test('are listed with status and steps; the index says what it is', async () => {
    expect(await ask('about', {}, answers.aboutAnswer)).toEqual({ index: 'memory' })
    const { runs } = await ask('runs', {}, answers.runsAnswer)
    expect(runs.map(({ name, steps }) => [name, steps])).toEqual([
      ['a/../b', 0],
      ['desk', 2],
    ])
  })

  test('F68: a damaged run is listed with its damage, beside those that are whole', async () => {
    const damage = 'desk/claims/0001.json: unreadable claim'
    const damaged: RunIndex = {
      ...index,
      async *runs() {
        for await (const run of index.runs()) yield run.name === 'desk' ? { ...run, damage } : run
      },
    }
    const { runs } = await explorer(damaged).ask('runs', {}, answers.runsAnswer)
    expect(runs.map((run) => [run.name, run.damage])).toEqual([
      ['a/../b', undefined],
      ['desk', damage],
    ])
  })

  test('one run tells its record, what was measured where, checkpoints and failures', async () => {
    const run = await ask('run', { run: 'desk' }, answers.runAnswer)
    expect(run.record.config).toEqual({ model: 'small' })
    expect(run.places).toEqual([
      { split: 'train', steps: [0, 1] },
      { split: 'eval', evaluation: 'held-out', steps: [1] },
    ])
    expect(run.totals).toEqual({ episodes: 6 })
    expect(run.checkpoints).toEqual([{ step: 2, name: 'last', kinds: ['training'], final: true }])
    expect(run.failures).toEqual([
      { step: 1, phase: 'train', error: { name: 'Error', message: 'no space' } },
    ])
  })

  test('metrics come as curves, times among them; what was not finite stays a gap', async () => {
    const names = 'optim/loss,time/total,no/such'
    const { series } = await ask('metrics', { run: 'desk', names }, answers.metricsAnswer)
    expect(series).toEqual([
      { split: 'train', name: 'optim/loss', steps: [0, 1], values: [1, null] },
      { split: 'train', name: 'time/total', steps: [0, 1], values: [2, 2] },
      { split: 'eval', evaluation: 'held-out', name: 'optim/loss', steps: [1], values: [null] },
    ])
  })

  test('a step gives all its numbers', async () => {
    const query = { run: 'desk', split: 'eval', evaluation: 'held-out', step: 1 }
    expect(await ask('numbers', query, answers.numbersAnswer)).toEqual({
      values: { 'env/all/reward/total': 0.1, 'optim/loss': null },
      timing: {},
    })
  })
})

describe('groups and episodes', () => {
  test('F69: every attempt of a step is there, with its end, its reward and why it was not trained', async () => {
    const query = { run: 'desk', split: 'train', step: 0 }
    const { groups } = await ask('groups', query, answers.groupsAnswer)
    expect(groups.map(({ task, dropped }) => [task, dropped])).toEqual([
      ['find-user', undefined],
      ['other', 'too few members'],
    ])
    expect(
      groups[0]?.episodes.map(({ member, attempt, end, reward, trained }) => [
        member,
        attempt,
        end,
        reward,
        trained,
      ]),
    ).toEqual([
      [0, 0, 'completed', { reward: 1 }, true],
      [1, 0, 'failed', undefined, undefined],
      [1, 1, 'completed', { reward: 0 }, 'stale'],
    ])
    expect(groups[0]?.episodes[1]?.reason).toEqual(failed)
  })

  test('a step of the training holds nothing of an evaluation, and the other way round', async () => {
    const query = { run: 'desk', split: 'eval', step: 1 }
    expect((await ask('groups', query, answers.groupsAnswer)).groups).toEqual([])
    const named = { ...query, evaluation: 'held-out' }
    const { groups } = await ask('groups', named, answers.groupsAnswer)
    expect(groups.map((group) => group.id)).toEqual(['eval/held-out/step-0001/g0'])
  })

  test('episodes come in pages that follow each other, without a gap or a double', async () => {
    const pages = []
    let after: string | undefined
    do {
      const query = { run: 'desk', limit: 2, ...(after === undefined ? {} : { after }) }
      const page = await ask('episodes', query, answers.episodesAnswer)
      pages.push(page.episodes.map((episode) => episode.id))
      after = page.next
    } while (after !== undefined)
    expect(pages).toEqual([
      [id, 'train/step-0000/g0/m1/a0'],
      ['train/step-0000/g0/m1/a1', 'train/step-0000/g1/m0/a0'],
      ['eval/held-out/step-0001/g0/m0/a0'],
    ])
  })

  test.each([
    [{ end: 'failed' }, ['train/step-0000/g0/m1/a0']],
    [{ task: 'other' }, ['train/step-0000/g1/m0/a0']],
    [{ minReward: 0.5 }, [id]],
    [{ minReward: 0, maxReward: 0.5 }, ['train/step-0000/g0/m1/a1']],
    [{ split: 'eval' }, ['eval/held-out/step-0001/g0/m0/a0']],
    [{ step: 7 }, []],
  ])('the filter %o finds what it says', async (filter, found) => {
    const { episodes } = await ask('episodes', { run: 'desk', ...filter }, answers.episodesAnswer)
    expect(episodes.map((episode) => episode.id)).toEqual(found)
  })
})

describe('an episode', () => {
  test('is told without its texts; calls point at the messages that answer them', async () => {
    const episode = await ask('episode', { run: 'desk', id }, answers.episodeAnswer)
    expect(episode.messages.map(({ role, reply }) => [role, reply])).toEqual([
      ['system', undefined],
      ['user', undefined],
      ['assistant', 0],
      ['tool', undefined],
      ['assistant', 1],
    ])
    expect(episode.calls).toEqual([{ name: 'find', ms: 1.5, message: 3 }])
    expect(episode.training).toEqual({
      step: 0,
      advantage: 0.5,
      data: [{ sequence: 0, length: 9, trained: 5 }],
    })
    expect(episode.sequences).toEqual([9])
    expect(JSON.stringify(episode)).not.toContain('You work at a desk')
  })

  test('messages come in pages, a tool’s answer with its call', async () => {
    const query = { run: 'desk', id, from: 2, count: 2 }
    const { messages } = await ask('episode/messages', query, answers.messagesAnswer)
    expect(messages.map(({ index: at }) => at)).toEqual([2, 3])
    expect(messages[0]?.calls).toEqual([
      { id: 'c0', name: 'find', arguments: { text: '{\n  "zip": "01234"\n}', chars: 20 } },
    ])
    expect(messages[1]?.answers).toEqual({ name: 'find', ms: 1.5 })
  })

  test('a long text begins in the list and is read to its end in pieces that split no character', async () => {
    const at = { run: 'desk', id: 'train/step-0000/g1/m0/a0' }
    const { messages } = await ask(
      'episode/messages',
      { ...at, from: 0, count: 1 },
      answers.messagesAnswer,
    )
    let read = messages[0]!.content.text
    expect(read.length).toBeLessThanOrEqual(CLIP_CHARS)
    expect(messages[0]?.content.chars).toBe(long.length)
    while (read.length < long.length) {
      const query = { ...at, message: 0, part: 'content', from: read.length, chars: 7_001 }
      const piece = await ask('episode/text', query, answers.textAnswer)
      expect(piece.text).not.toMatch(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/)
      read += piece.text
    }
    expect(read).toBe(long)
  })

  test('what is searched is found anywhere in it, as text and not as a pattern', async () => {
    const find = (text: string) =>
      ask('episode/find', { run: 'desk', id, text }, answers.findAnswer)
    expect((await find('DESK.')).hits).toEqual([
      { message: 0, part: 'content', at: 14, excerpt: 'You work at a desk.' },
    ])
    expect((await find('"01234"')).hits.map(({ message, part }) => [message, part])).toEqual([
      [2, 'call:0'],
    ])
    expect((await find('.*')).hits).toEqual([])
  })

  test('each token has its probability, mask, advantage and reply; shown ones have none', async () => {
    const query = { run: 'desk', id, sequence: 0, from: 2, count: 4 }
    expect(await ask('episode/tokens', query, answers.tokensAnswer)).toEqual({
      from: 2,
      total: 9,
      ids: [3, 0x66, 0xc3, 4],
      logprobs: [null, -0.5, -1, null],
      mask: [0, 1, 1, 0],
      advantages: [0, 0.5, 0.5, 0],
      replies: [-1, 0, 0, -1],
    })
  })

  test('tokens are spelled by the vocabulary that says what the messages say, and by no other', async () => {
    const { ask: spelled } = explorer(index, { tokenizers: [byteTokenizer([])] })
    const query = { run: 'desk', id, sequence: 0, from: 3, count: 6 }
    const { texts } = await spelled('episode/tokens', query, answers.tokensAnswer)
    expect(texts).toBeUndefined()
    const plain = await indexOf({
      desk: [
        episodeEvent(
          {},
          { messages: [{ role: 'assistant', content: 'ann', reply: 1 }], calls: [] },
        ),
      ],
    })
    const answer = await explorer(plain, { tokenizers: [byteTokenizer([])] }).ask(
      'episode/tokens',
      query,
      answers.tokensAnswer,
    )
    expect(answer.texts).toEqual(['f', String.raw`\xC3`, '\u0004', 'a', 'n', 'n'])
  })

  test('advantages that differ from token to token are told one by one', async () => {
    const advantages = Float32Array.of(0, 0, 0, 0.5, 0.25, 0, 1, 0, -1)
    const changed = await indexOf({
      desk: [
        episodeEvent(),
        trainingEvent({}, { data: [{ sequence: 0, length: 9, trained: 5, advantages }] }),
      ],
    })
    const query = { run: 'desk', id, sequence: 0, from: 3, count: 6 }
    const answer = await explorer(changed).ask('episode/tokens', query, answers.tokensAnswer)
    expect(answer.advantages).toEqual([0.5, 0.25, 0, 1, 0, -1])
  })

  test('its record is to be had as it is, with ids as numbers', async () => {
    const response = await explorer(index).send(
      `/api/episode/raw?${new URLSearchParams({ run: 'desk', id }).toString()}`,
    )
    const raw = (await response.json()) as { episode: { sequences: { ids: number[] }[] } }
    expect(raw.episode.sequences[0]?.ids).toEqual([1, 2, 3, 0x66, 0xc3, 4, 0x61, 0x6e, 0x6e])
  })

  test('one that never ended shows what its journal holds', async () => {
    const interrupted = await indexOf({
      desk: [
        {
          type: 'call',
          key: episodeKey(),
          task: 'find-user',
          fingerprint: 'f0',
          startedAt: 1,
          reply: 0,
          messages: [{ role: 'user', content: 'Hello?' }],
        },
      ],
    })
    const { ask: asked } = explorer(interrupted)
    const episode = await asked('episode', { run: 'desk', id }, answers.episodeAnswer)
    expect([episode.ended, episode.episode.end]).toEqual([false, 'unfinished'])
    const query = { run: 'desk', id, from: 0, count: 9 }
    const { messages } = await asked('episode/messages', query, answers.messagesAnswer)
    expect(messages.map(({ content }) => content.text)).toEqual(['Hello?'])
  })

  test('a reader who turns pages reads the record once, and sees what is new a second later', async () => {
    let reads = 0
    let time = 0
    const counted: RunIndex = {
      ...index,
      episode: (run, key) => {
        reads += 1
        return index.episode(run, key)
      },
    }
    const { ask: asked } = explorer(counted, { now: () => time })
    for (const from of [0, 1, 2]) {
      const query = { run: 'desk', id, from, count: 1 }
      await asked('episode/messages', query, answers.messagesAnswer)
    }
    expect(reads).toBe(1)
    time = 1_001
    await asked('episode', { run: 'desk', id }, answers.episodeAnswer)
    expect(reads).toBe(2)
  })
})

describe('a test case', () => {
  const codeOf = async (event: RunEvent) => {
    const made = await indexOf({ desk: [event, scoreEvent({}, 1)] })
    return explorer(made).ask('episode/test-case', { run: 'desk', id }, answers.testCaseAnswer)
  }

  test('repeats the replies and expects the scores', async () => {
    expect(await codeOf(episodeEvent())).toEqual({
      notes: [],
      code: `await expectScore(bundle, "find-user", [
  { name: "find", arguments: {"zip":"01234"} },
  "ann",
], {
  "answer": 1,
})
`,
    })
  })

  test('says what it can’t repeat, on one line each whatever the text', async () => {
    const { code, notes } = await codeOf(
      episodeEvent(
        {},
        {
          task: "o'neil\n\u2028",
          end: { kind: 'cut', by: 'replies' },
          messages: [
            {
              role: 'assistant',
              content: 'Looking.',
              reply: 0,
              toolCalls: [
                { id: 'a', name: 'find', arguments: { ['__proto__']: 1, x: 1 } },
                { id: 'b', name: 'find', rawArguments: '{', error: 'no JSON' },
              ],
            },
          ],
        },
      ),
    )
    expect(notes).toHaveLength(3)
    expect(code.split('\n').filter((line) => line.startsWith('//'))).toHaveLength(3)
    expect(code).toContain(String.raw`expectScore(bundle, "o'neil\n`)
  })
})
