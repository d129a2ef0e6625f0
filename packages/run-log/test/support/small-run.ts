import {
  RECORD_VERSION,
  type CallEvent,
  type EpisodeEvent,
  type EpisodeKey,
  type MetricsEvent,
  type RunEvent,
  type RunRecord,
} from '@tiltyard/core'

export function runRecord(name = 'one'): RunRecord {
  return {
    version: RECORD_VERSION,
    name,
    startedAt: 1,
    seed: 7,
    config: {},
    fingerprints: {},
    versions: {},
  }
}

export function key(parts: Partial<EpisodeKey> = {}): EpisodeKey {
  return { split: 'train', step: 0, group: 0, member: 0, attempt: 0, ...parts }
}

export function episode(parts: Partial<EpisodeKey> = {}, task = 't'): EpisodeEvent {
  return {
    type: 'episode',
    key: key(parts),
    task,
    fingerprint: 'f',
    seed: 1,
    startedAt: 1,
    ms: 1,
    end: { kind: 'completed' },
    messages: [{ role: 'user', content: 'hi' }],
    tools: [],
    calls: [],
    replies: [],
    sequences: [{ ids: Int32Array.of(1), logprobs: Float32Array.of(0), mask: Int32Array.of(0) }],
  }
}

export function score(parts: Partial<EpisodeKey>, reward: number): RunEvent {
  return {
    type: 'score',
    key: key(parts),
    scores: { answer: { value: reward } },
    metrics: {},
    reward: { reward },
  }
}

export function call(parts: Partial<EpisodeKey>, reply: number): CallEvent {
  return {
    type: 'call',
    key: key(parts),
    task: 't',
    fingerprint: 'f',
    startedAt: 1,
    reply,
    messages: [],
  }
}

export function metrics(at: number): MetricsEvent {
  return {
    type: 'metrics',
    split: 'train',
    step: at,
    values: { loss: 1 / (at + 1), kl: null },
    timing: { 'step:ms': at },
  }
}

export function step(at: number): RunEvent {
  return { type: 'step', step: at, position: at, totals: {} }
}

export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
