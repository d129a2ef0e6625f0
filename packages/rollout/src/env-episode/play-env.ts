import {
  DataError,
  isRunnable,
  systemClock,
  type AssistantMessage,
  type Clock,
  type CutReason,
  type EndReason,
  type Env,
  type ParsedReply,
  type PlayContext,
  type PlayedReply,
  type PolicyHandle,
  type Sample,
  type SampleRequest,
  type Step,
} from '@tiltyard/core'

import { createAlarms, type Alarms } from '../alarms.ts'
import { EpisodeError } from '../episode-error.ts'
import type { PlayOptions, Waits } from '../options.ts'
import { replySeed } from '../seeds.ts'
import { waitDefaults } from '../waits.ts'
import { createDialogue, type Dialogue, type NextPrompt } from './dialogue.ts'
import { correction, structuralFault } from './malformed.ts'
import { roomFor, type Room } from './room.ts'
import { createWatch, type Watch } from './watch.ts'

const DEFAULT_MIN_REPLY_TOKENS = 2

/** Plays an Env to its end: sample, record, step, go on. Every way out is a reason; only what broke is thrown. */
export async function playEnv(
  env: Env,
  policy: PolicyHandle,
  context: PlayContext,
  options: PlayOptions,
  alarms?: Alarms,
): Promise<EndReason> {
  const waits = { ...waitDefaults, ...options.waits }
  const clock = options.clock ?? systemClock
  const own = alarms === undefined ? createAlarms(clock) : undefined
  const watch = createWatch(context.signal, alarms ?? own!, waits.graceMs)
  // A play that doesn't heed its signal must not keep the process alive by its timers.
  const close = () => own?.close()
  context.signal.addEventListener('abort', close, { once: true })
  try {
    return await watch.bound(playOn({ env, policy, context, options, waits, clock, watch }))
  } finally {
    context.signal.removeEventListener('abort', close)
    close()
  }
}

interface Player {
  readonly env: Env
  readonly policy: PolicyHandle
  readonly context: PlayContext
  readonly options: PlayOptions
  readonly waits: Required<Waits>
  readonly clock: Clock
  readonly watch: Watch
}

async function playOn(player: Player): Promise<EndReason> {
  const { env, policy, context, options, waits, watch } = player
  const { limits, record } = context
  const { signal } = watch
  const { malformed: malformedPolicy = {}, minReplyTokens = DEFAULT_MIN_REPLY_TOKENS } = options
  const dialogue = createDialogue(policy.renderer, record, options.images ?? 'refuse')

  const start = {
    phase: 'start',
    what: 'the start of an environment',
    milliseconds: waits.openMs,
  } as const
  await dialogue.open(await watch.during(start, () => env.start(signal)))
  record.count?.('turns')
  let turns = 1
  let sampledTokens = 0
  let calls = 0
  let runCalls = 0
  let malformedInARow = 0

  for (let replies = 0; ; replies += 1) {
    context.signal.throwIfAborted()
    if (replies >= (limits.replies ?? Infinity)) return cut('replies')
    await injectMessages(player, dialogue, replies, turns)
    const next = dialogue.prompt()
    const usage = { promptTokens: next.prompt.length, sampledTokens }
    const room = roomFor(limits, usage, policy.sampler.contextWindow, minReplyTokens)
    if ('cut' in room) return cut(room.cut)

    const { sample, ms } = await sampleReply(player, next, room, replies)
    sampledTokens += sample.ids.length
    const firstCall = calls
    const parsed = policy.renderer.parse(sample.ids, {
      tools: dialogue.tools,
      stop: sample.stop,
      callId: (index) => `call_${firstCall + index}`,
    })
    const { message } = parsed
    calls += message.toolCalls?.length ?? 0
    const fault = sample.stop === 'length' ? undefined : structuralFault(parsed)
    const isTrained = fault === undefined || malformedPolicy.train !== false
    // Before anything of the reply is acted on: a record of what was about to happen outlives a crash.
    await record.reply(toPlayed(player, { next, sample, parsed, index: replies, isTrained, ms }))
    context.signal.throwIfAborted()

    if (sample.stop === 'length') return cut(room.by)

    if (parsed.malformed.length > 0) record.count?.('malformed_calls', parsed.malformed.length)
    if (fault !== undefined) {
      record.count?.('malformed_replies')
      malformedInARow += 1
      const told = correction(malformedPolicy, fault, malformedInARow)
      if (told === undefined || replies + 1 >= (limits.replies ?? Infinity))
        return cut('malformed_reply')
      await record.observation([told], [])
      dialogue.follow({ sample, message: undefined, next: [told] })
      continue
    }
    malformedInARow = 0

    const toolCallsLeft = (limits.toolCalls ?? Infinity) - runCalls
    const wanted = message.toolCalls?.filter(isRunnable).length ?? 0
    const step = await stepEnv(player, message, toolCallsLeft)
    const ran = Math.min(wanted, toolCallsLeft)
    runCalls += ran
    record.count?.('tool_calls', ran)
    const messages = dialogue.shown(step.messages ?? [])
    await record.observation(messages, step.calls ?? [])
    if (step.done) return { kind: 'completed' }
    if (wanted > toolCallsLeft) return cut('tool_calls')

    checkAnswers(message, step)
    dialogue.follow({ sample, message, next: messages })
    if (step.turn !== undefined || messages.some(({ role }) => role === 'user')) {
      if (turns >= (limits.turns ?? Infinity)) return cut('turns')
      turns += 1
      record.count?.('turns')
    }
    if (step.turn !== undefined) await dialogue.changeHead(step.turn)
  }
}

function cut(by: CutReason): EndReason {
  return { kind: 'cut', by }
}

async function injectMessages(
  { options, waits, watch }: Player,
  dialogue: Dialogue,
  replies: number,
  turns: number,
): Promise<void> {
  const hook = options.hooks?.beforeReply
  if (hook === undefined) return
  const wait = {
    phase: 'agent',
    what: 'a hook before a reply',
    milliseconds: waits.stepMs,
  } as const
  const { messages } = dialogue
  const injected = await watch.during(wait, async () =>
    hook({ messages, replies, turns, signal: watch.signal }),
  )
  if (injected.length > 0) await dialogue.inject(injected)
}

async function sampleReply(
  { policy, context, waits, clock, watch }: Player,
  { prompt }: NextPrompt,
  room: Exclude<Room, { cut: CutReason }>,
  index: number,
): Promise<{ readonly sample: Sample; readonly ms: number }> {
  const { sampler, renderer, sampling } = policy
  const request: SampleRequest = {
    prompt,
    maxTokens: room.tokens,
    stop: renderer.stop,
    ...sampling,
    seeds: [replySeed(context.seed, index)],
  }
  const startedAt = clock.now()
  const what = `reply ${index} of ${sampler.version.id}`
  const sample = await watch.during(
    { phase: 'sample', what, milliseconds: waits.replyMs },
    async () => {
      const [first] = await sampler.sample(request, { signal: watch.signal })
      return checkSample(first, index)
    },
  )
  return { sample, ms: clock.now() - startedAt }
}

function checkSample(sample: Sample | undefined, index: number): Sample {
  if (sample === undefined) throw new DataError(`reply ${index}: the sampler gave no sample`)
  const { ids, logprobs } = sample
  if (ids.length !== logprobs.length) {
    throw new DataError(
      `reply ${index} has ${ids.length} ids and ${logprobs.length} log-probabilities`,
    )
  }
  const bad = logprobs.findIndex((value) => !Number.isFinite(value))
  if (bad !== -1)
    throw new DataError(`reply ${index}: the log-probability of id ${bad} is ${logprobs[bad]}`)
  return sample
}

function toPlayed(
  { policy, context }: Player,
  reply: {
    readonly next: NextPrompt
    readonly sample: Sample
    readonly parsed: ParsedReply
    readonly index: number
    readonly isTrained: boolean
    readonly ms: number
  },
): PlayedReply {
  const { next, sample, parsed, index, isTrained, ms } = reply
  return {
    prompt: next.prompt,
    sample,
    version: policy.sampler.version,
    sampling: policy.sampling,
    seed: replySeed(context.seed, index),
    message: parsed.message,
    termination: parsed.termination,
    malformed: parsed.malformed,
    ...(next.restart === undefined ? {} : { restart: next.restart }),
    trained: isTrained,
    ms,
  }
}

function stepEnv(
  { env, context, waits, watch }: Player,
  message: AssistantMessage,
  toolCallsLeft: number,
): Promise<Step> {
  const { signal } = watch
  const { toolMs } = context.limits
  const time = toolMs === undefined ? {} : { toolMs }
  const callsMs =
    toolMs === undefined ? 0 : toolMs * (message.toolCalls?.length ?? 0) + waits.graceMs
  const milliseconds = Math.max(waits.stepMs, callsMs)
  return watch.during(
    { phase: 'tool', what: 'a step of the environment', milliseconds },
    async () => env.step(message, { signal, toolCallsLeft, ...time }),
  )
}

/** The next prompt must answer every call once, in order, or say something. */
function checkAnswers({ toolCalls = [] }: AssistantMessage, { messages = [] }: Step): void {
  const asked = toolCalls.map(({ id }) => id)
  const answered = messages.flatMap((message) =>
    message.role === 'tool' ? [message.toolCallId] : [],
  )
  if (asked.length !== answered.length || asked.some((id, index) => id !== answered[index])) {
    throw new EpisodeError(
      'tool',
      new DataError(
        `the environment answered [${answered.join(', ')}]; the reply calls [${asked.join(', ')}]`,
      ),
    )
  }
  if (messages.length === 0) {
    throw new EpisodeError(
      'tool',
      new DataError('the environment goes on and gave no message to go on with'),
    )
  }
}
