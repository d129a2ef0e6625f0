import {
  RECORD_VERSION,
  type EpisodeEvent,
  type EpisodeKey,
  type MetricsEvent,
  type RunEvent,
  type RunRecord,
  type ScoreEvent,
  type TrainingEvent,
} from '@tiltyard/core'
import { memoryRunIndex, type MemoryRunIndex } from '@tiltyard/testkit'

/** Runs as a test needs them. */

function runRecord(name: string): RunRecord {
  return {
    version: RECORD_VERSION,
    name,
    startedAt: 1_764_000_000_000,
    seed: 7,
    config: { model: 'small' },
    fingerprints: { renderer: 'r1' },
    versions: { node: '20.20.2' },
  }
}

export function episodeKey(parts: Partial<EpisodeKey> = {}): EpisodeKey {
  return { split: 'train', step: 0, group: 0, member: 0, attempt: 0, ...parts }
}

/** A play with a call: three ids shown, two replies of two and three ids. */
export function episodeEvent(
  parts: Partial<EpisodeKey> = {},
  over: Partial<EpisodeEvent> = {},
): EpisodeEvent {
  const reply = {
    version: { id: 'v0', step: 0 },
    sequence: 0,
    stop: 'stop',
    trained: true,
  } as const
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
      { role: 'user', content: 'Who is in 01234?' },
      {
        role: 'assistant',
        content: '',
        reply: 0,
        toolCalls: [{ id: 'c0', name: 'find', arguments: { zip: '01234' } }],
      },
      { role: 'tool', content: 'zoe_1', toolCallId: 'c0', name: 'find' },
      { role: 'assistant', content: 'ann', reply: 1 },
    ],
    tools: [{ name: 'find', parameters: { type: 'object' } }],
    calls: [{ id: 'c0', name: 'find', arguments: { zip: '01234' }, result: 'zoe_1', ms: 1.5 }],
    replies: [
      { ...reply, start: 3, length: 2, ms: 20 },
      { ...reply, start: 6, length: 3, ms: 10 },
    ],
    sequences: [
      {
        // With bytes as tokens the second reply reads "ann".
        ids: Int32Array.of(1, 2, 3, 0x66, 0xc3, 4, 0x61, 0x6e, 0x6e),
        logprobs: Float32Array.of(0, 0, 0, -0.5, -1, 0, -0.25, -2, -4),
        mask: Int32Array.of(0, 0, 0, 1, 1, 0, 1, 1, 1),
      },
    ],
    ...over,
  }
}

export function scoreEvent(parts: Partial<EpisodeKey>, reward: number): ScoreEvent {
  return {
    type: 'score',
    key: episodeKey(parts),
    scores: { answer: { value: reward, note: 'as told' } },
    metrics: { messages: 5 },
    reward: { reward },
  }
}

export function trainingEvent(
  parts: Partial<EpisodeKey>,
  over: Partial<TrainingEvent> = {},
): TrainingEvent {
  const key = episodeKey(parts)
  return {
    type: 'training',
    key,
    step: key.step,
    advantage: 0.5,
    data: [{ sequence: 0, length: 9, trained: 5 }],
    ...over,
  }
}

export function metricsEvent(step: number, over: Partial<MetricsEvent> = {}): MetricsEvent {
  return {
    type: 'metrics',
    split: 'train',
    step,
    values: { 'env/all/reward/total': step / 10, 'optim/loss': step === 1 ? null : 1 },
    timing: { 'time/total': 2 },
    ...over,
  }
}

export async function indexOf(
  runs: Readonly<Record<string, readonly RunEvent[]>>,
): Promise<MemoryRunIndex> {
  const index = memoryRunIndex()
  for (const [name, events] of Object.entries(runs)) {
    const writer = await index.claim(runRecord(name), { expect: 'new' })
    for (const event of events) await writer.append(event)
    await writer.close()
  }
  return index
}
