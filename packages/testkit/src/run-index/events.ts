import {
  RECORD_VERSION,
  type CallEvent,
  type EpisodeEvent,
  type EpisodeKey,
  type MetricsEvent,
  type RunEvent,
  type RunRecord,
  type ScoreEvent,
  type StepEvent,
  type TrainingEvent,
} from '@tiltyard/core'

/** Events of a small run, for the cases. */

export function runRecord(name: string): RunRecord {
  return {
    version: RECORD_VERSION,
    name,
    startedAt: 1_764_000_000_000,
    seed: 7,
    config: { model: 'small', limits: { turns: 3 } },
    fingerprints: { renderer: 'r1', dataset: 'd1' },
    versions: { tiltyard: '0.1.0', node: '20.20.2' },
    git: { commit: 'abc', dirty: false },
  }
}

export type KeyParts = Partial<EpisodeKey>

export function episodeKey(parts: KeyParts = {}): EpisodeKey {
  return { split: 'train', step: 0, group: 0, member: 0, attempt: 0, ...parts }
}

export function episodeEvent(parts: KeyParts = {}, over: Partial<EpisodeEvent> = {}): EpisodeEvent {
  return {
    type: 'episode',
    key: episodeKey(parts),
    task: 'find-user',
    fingerprint: 'f0',
    tags: ['easy'],
    seed: 11,
    startedAt: 1_764_000_001_000,
    ms: 250.5,
    end: { kind: 'completed' },
    messages: [
      { role: 'system', content: 'You work at a desk.' },
      { role: 'user', content: [{ type: 'text', text: 'Who is Zoë in 01234? \u2028 🏇' }] },
      {
        role: 'assistant',
        content: '',
        reasoning: 'look it up',
        reply: 0,
        toolCalls: [{ id: 'c0', name: 'find', arguments: { zip: '01234', $i32: 'no array' } }],
      },
      { role: 'tool', content: 'zoe_1', toolCallId: 'c0', name: 'find' },
      { role: 'assistant', content: 'zoe_1', reply: 1 },
    ],
    tools: [{ name: 'find', parameters: { type: 'object' } }],
    calls: [{ id: 'c0', name: 'find', arguments: { zip: '01234' }, result: 'zoe_1', ms: 1.5 }],
    replies: [
      {
        version: { id: 'v0', step: 0 },
        sequence: 0,
        start: 3,
        length: 2,
        stop: 'stop',
        seed: 5,
        trained: true,
        ms: 20,
      },
      {
        version: { id: 'v0', step: 0 },
        sequence: 0,
        start: 6,
        length: 1,
        stop: 'stop',
        seed: 6,
        trained: true,
        ms: 10,
      },
    ],
    sequences: [
      {
        ids: Int32Array.of(1, 2, -1, 300_000, 4, 5, 6),
        logprobs: Float32Array.of(0, 0, 0, -0.1, -1e-30, 0, -12.5),
        mask: Int32Array.of(0, 0, 0, 1, 1, 0, 1),
      },
    ],
    ...over,
  }
}

export function scoreEvent(parts: KeyParts, reward: number | string): ScoreEvent {
  return {
    type: 'score',
    key: episodeKey(parts),
    scores: {
      answer:
        typeof reward === 'number' ? { value: reward, note: 'as told' } : { unscored: reward },
    },
    metrics: { messages: 5 },
    reward: typeof reward === 'number' ? { reward } : { unscored: reward },
  }
}

export function trainingEvent(
  parts: KeyParts,
  step: number,
  over: Partial<TrainingEvent> = {},
): TrainingEvent {
  return {
    type: 'training',
    key: episodeKey(parts),
    step,
    advantage: 0.5,
    data: [
      { sequence: 0, length: 6, trained: 3, advantages: Float32Array.of(0, 0, 0, 0.5, 0.25, 0, 1) },
    ],
    ...over,
  }
}

export function callEvent(parts: KeyParts, reply: number): CallEvent {
  return {
    type: 'call',
    key: episodeKey(parts),
    task: 'find-user',
    fingerprint: 'f0',
    startedAt: 1_764_000_001_000,
    reply,
    messages: [{ role: 'assistant', content: `reply ${reply}`, reply }],
    calls: [{ id: `c${reply}`, name: 'find', arguments: {}, result: 'none', ms: 1 }],
  }
}

export function metricsEvent(step: number, loss: number): MetricsEvent {
  return {
    type: 'metrics',
    split: 'train',
    step,
    values: { loss, 'reward:mean': null },
    timing: { 'step:ms': 12.5 },
  }
}

export function stepEvent(step: number): StepEvent {
  return { type: 'step', step, position: { epoch: 0, index: step }, totals: { episodes: step + 1 } }
}

/** All events of one step with two episodes in one group, in the order in which a trainer writes them. */
export function stepOfEvents(step: number): readonly RunEvent[] {
  return [
    episodeEvent({ step, member: 0 }),
    scoreEvent({ step, member: 0 }, 1),
    episodeEvent({ step, member: 1 }),
    scoreEvent({ step, member: 1 }, 0),
    {
      type: 'group',
      key: { split: 'train', step, group: 0 },
      task: 'find-user',
      fingerprint: 'f0',
      members: 2,
    },
    trainingEvent({ step, member: 0 }, step),
    trainingEvent({ step, member: 1 }, step, { advantage: -0.5 }),
    metricsEvent(step, 1 / (step + 1)),
    stepEvent(step),
    {
      type: 'checkpoint',
      step: step + 1,
      name: `step-${step + 1}`,
      training: { path: `c/${step + 1}`, kind: 'training' },
    },
  ]
}
