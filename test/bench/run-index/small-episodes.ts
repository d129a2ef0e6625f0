import type { EpisodeEvent, EpisodeKey, RunEvent } from '@tiltyard/core'

const TOKENS = 48

/** Plays are made before and given out again: the benchmark is about recording them. A gzip member holds fewer than these. */
const PLAYS = 1_000
const plays = new Map<number, EpisodeEvent>()

/** A small episode as a trainer records it: the play (about 2 kB of JSON), its score, what training made of it. */
export function smallEpisode(key: EpisodeKey, number: number): readonly RunEvent[] {
  const reward = (number * 7_919) % 11 < 5 ? 1 : 0
  const made = plays.get(number % PLAYS) ?? play(number % PLAYS)
  plays.set(number % PLAYS, made)
  return [
    {
      ...made,
      key,
      seed: number,
      // One in a thousand is cut.
      end: number % 1_000 === 17 ? { kind: 'cut', by: 'turns' } : { kind: 'completed' },
    },
    {
      type: 'score',
      key,
      scores: { answer: { value: reward }, calls: { value: 1 } },
      metrics: { messages: 5, tool_calls: 1 },
      reward: { reward },
    },
    {
      type: 'training',
      key,
      step: key.step,
      advantage: reward - 0.5,
      data: [{ sequence: 0, length: TOKENS - 1, trained: 20 }],
    },
  ]
}

function play(number: number): EpisodeEvent {
  const customer = (number * 104_729) % 500
  return {
    type: 'episode',
    key: { split: 'train', step: 0, group: 0, member: 0, attempt: 0 },
    task: `find-customer-${customer}`,
    fingerprint: `b9f1c0de${customer}`,
    seed: number,
    startedAt: 1_764_000_000_000 + number,
    ms: 900 + (number % 300),
    end: { kind: 'completed' },
    messages: [
      { role: 'system', content: 'You work at the desk of a store. Find the customer.' },
      { role: 'user', content: `I am customer ${customer}, zip code 0${customer}. What is my id?` },
      {
        role: 'assistant',
        content: '',
        reply: 0,
        toolCalls: [
          {
            id: 'c0',
            name: 'find_user_id_by_name_zip',
            arguments: { first_name: 'Ann', last_name: `Lee${customer}`, zip: `0${customer}` },
          },
        ],
      },
      { role: 'tool', content: `ann_lee_${customer}`, toolCallId: 'c0' },
      { role: 'assistant', content: `Your id is ann_lee_${customer}.`, reply: 1 },
    ],
    tools: [],
    calls: [
      {
        id: 'c0',
        name: 'find_user_id_by_name_zip',
        arguments: { last_name: `Lee${customer}` },
        result: `ann_lee_${customer}`,
        ms: 0.4,
      },
    ],
    replies: [reply(20, 12, number), reply(36, 8, number + 1)],
    sequences: [
      {
        ids: Int32Array.from({ length: TOKENS }, (_, at) => (number * 31 + at * 17) % 512),
        logprobs: Float32Array.from({ length: TOKENS }, (_, at) => -((number + at) % 97) / 31),
        mask: Int32Array.from({ length: TOKENS }, (_, at) => (at % 24 < 12 ? 0 : 1)),
      },
    ],
  }
}

function reply(start: number, length: number, seed: number): EpisodeEvent['replies'][number] {
  return {
    version: { id: 'v', step: 0 },
    sequence: 0,
    start,
    length,
    stop: 'stop',
    seed,
    trained: true,
    ms: 30,
  }
}
