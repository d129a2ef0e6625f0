import {
  RECORD_VERSION,
  type EpisodeEvent,
  type EpisodeKey,
  type MetricsEvent,
  type RunEvent,
  type RunIndex,
  type RunWriter,
} from '@tiltyard/core'

/** Runs that no small training makes: with attacks, failures and a very long episode. */

export const TURNS = 300
const RESULT_CHARS = 38_000

/** Texts that would run, load or hide something, were they markup. */
export const attacks = {
  script: '<script>window.attacked = "script"</script>',
  image: '<img src="x" onerror="window.attacked = \'image\'">',
  link: '[click](javascript:window.attacked=1)',
  formula: String.raw`$$\href{javascript:window.attacked=1}{x}$$`,
  reversed: 'safe \u202Egnihtemos',
}

export const taskOfAttack = '<b onmouseover="window.attacked=1">task</b>'

export async function claimRun(index: RunIndex, name: string): Promise<RunWriter> {
  const record = {
    version: RECORD_VERSION,
    name,
    startedAt: 1_764_000_000_000,
    seed: 7,
    config: { model: attacks.script, limits: { turns: TURNS } },
    fingerprints: { renderer: 'r1' },
    versions: { node: '20.20.2' },
  } as const
  return index.claim(record, { expect: 'new' })
}

export async function writeMadeUp(index: RunIndex): Promise<void> {
  const writer = await claimRun(index, 'made-up')
  for (const event of events()) await writer.append(event)
  await writer.close()
}

export const longEpisode = 'train/step-0001/g0/m0/a0'
export const attackedEpisode = 'train/step-0000/g0/m0/a0'

const failed: EpisodeEvent['end'] = {
  kind: 'failed',
  phase: 'tool',
  error: { name: 'Error', message: `the desk burned ${attacks.image}` },
}

function* events(): Generator<RunEvent> {
  // F69: of one step, five trained, one cut, one stale, one that failed and was played again.
  for (let member = 0; member < 5; member += 1) {
    yield episode({ member }, member === 0 ? attacked() : {})
    yield scored({ member }, member / 4)
    yield trained({ member })
  }
  yield episode({ member: 5 }, { end: { kind: 'cut', by: 'reply_tokens' } })
  yield scored({ member: 5 }, 0)
  yield trained({ member: 5 })
  yield episode({ member: 6 })
  yield scored({ member: 6 }, 1)
  yield { ...trained({ member: 6 }), untrained: 'stale', data: [] }
  yield episode({ member: 7 }, { end: failed, messages: [], calls: [], replies: [], sequences: [] })
  yield episode({ member: 7, attempt: 1 })
  yield scored({ member: 7, attempt: 1 }, 0.5)
  yield trained({ member: 7, attempt: 1 })
  yield group(0, 8)
  yield episode({ group: 1 }, { task: 'lost' })
  yield { ...group(1, 1), task: 'lost', dropped: 'too few members' }
  yield metrics(0, {
    'env/all/reward/total': 0.5,
    'rollout_errors/total': 1,
    'rollout_errors/retries': 1,
    'groups/dropped': 1,
    'groups/stale': 1,
  })
  yield { type: 'step', step: 0, position: 0, totals: { episodes: 9 } }
  yield long()
  yield metrics(1, { 'env/all/reward/total': 0.75 })
  yield { type: 'step', step: 1, position: 1, totals: { episodes: 10 } }
}

function keyOf(parts: Partial<EpisodeKey>): EpisodeKey {
  return { split: 'train', step: 0, group: 0, member: 0, attempt: 0, ...parts }
}

export function metrics(step: number, values: MetricsEvent['values']): MetricsEvent {
  return { type: 'metrics', split: 'train', step, values, timing: { 'time/total': 1 } }
}

function group(number: number, members: number): RunEvent & { type: 'group' } {
  const key = { split: 'train', step: 0, group: number } as const
  return { type: 'group', key, task: taskOfAttack, fingerprint: 'f0', members }
}

function scored(parts: Partial<EpisodeKey>, reward: number): RunEvent {
  return {
    type: 'score',
    key: keyOf(parts),
    scores: { [attacks.script]: { value: reward, note: attacks.image } },
    metrics: {},
    reward: { reward },
  }
}

function trained(parts: Partial<EpisodeKey>): RunEvent & { type: 'training' } {
  const data = [{ sequence: 0, length: 6, trained: 3 }]
  return { type: 'training', key: keyOf(parts), step: 0, advantage: -0.25, data }
}

const reply = {
  version: { id: 'v0', step: 0 },
  sequence: 0,
  stop: 'stop',
  trained: true,
  ms: 20,
} as const

export function episode(
  parts: Partial<EpisodeKey>,
  over: Partial<EpisodeEvent> = {},
): EpisodeEvent {
  return {
    type: 'episode',
    key: keyOf(parts),
    task: taskOfAttack,
    fingerprint: 'f0',
    seed: 11,
    startedAt: 1_764_000_001_000,
    ms: 250.5,
    end: { kind: 'completed' },
    messages: [
      { role: 'user', content: 'Hello?' },
      { role: 'assistant', content: 'Hello.', reply: 0 },
    ],
    tools: [],
    calls: [],
    replies: [{ ...reply, start: 3, length: 3 }],
    sequences: [
      {
        ids: Int32Array.of(1, 2, 3, 4, 5, 6),
        logprobs: Float32Array.of(0, 0, 0, -0.1, -1, -4),
        mask: Int32Array.of(0, 0, 0, 1, 1, 1),
      },
    ],
    ...over,
  }
}

function attacked(): Partial<EpisodeEvent> {
  return {
    tags: [attacks.script],
    messages: [
      { role: 'system', content: attacks.image },
      { role: 'user', content: [{ type: 'text', text: attacks.link }] },
      {
        role: 'assistant',
        content: Object.values(attacks).join('\n'),
        reasoning: attacks.formula,
        reply: 0,
        toolCalls: [{ id: 'c0', name: attacks.script, arguments: { text: attacks.image } }],
      },
      { role: 'tool', content: attacks.script, toolCallId: 'c0', name: attacks.image },
    ],
    tools: [
      { name: attacks.script, description: attacks.image, parameters: { title: attacks.link } },
    ],
    calls: [
      {
        id: 'c0',
        name: attacks.script,
        arguments: {},
        result: attacks.image,
        ms: 1,
        error: attacks.link,
      },
    ],
  }
}

function long(): EpisodeEvent {
  const messages: EpisodeEvent['messages'][number][] = [{ role: 'user', content: 'Read it all.' }]
  const calls: EpisodeEvent['calls'][number][] = []
  const replies: EpisodeEvent['replies'][number][] = []
  const perTurn = 40
  for (let turn = 0; turn < TURNS; turn += 1) {
    const id = `c${turn}`
    const result = `page ${turn}\n${`line of page ${turn}; `.repeat(RESULT_CHARS / 20)}`
    messages.push(
      {
        role: 'assistant',
        content: `I read page ${turn}.`,
        reply: turn,
        toolCalls: [{ id, name: 'read', arguments: { page: turn } }],
      },
      { role: 'tool', content: result, toolCallId: id, name: 'read' },
    )
    calls.push({ id, name: 'read', arguments: { page: turn }, result, ms: turn })
    replies.push({ ...reply, start: turn * perTurn + perTurn / 2, length: perTurn / 2 })
  }
  messages.push({ role: 'user', content: 'The needle at the end.' })
  const length = TURNS * perTurn
  return episode(
    { step: 1 },
    {
      task: 'long',
      messages,
      calls,
      replies,
      sequences: [
        {
          ids: Int32Array.from({ length }, (_, at) => at % 500),
          logprobs: Float32Array.from({ length }, () => -0.5),
          mask: Int32Array.from({ length }, (_, at) => Number(at % perTurn >= perTurn / 2)),
        },
      ],
    },
  )
}
