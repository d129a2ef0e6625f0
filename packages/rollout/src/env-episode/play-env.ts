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
  type RenderedPrompt,
  type Sample,
  type SampleRequest,
  type Step,
} from '@tiltyard/core'

import { createAlarms, type Alarms } from '../alarms.ts'
import { EpisodeError } from '../episode-error.ts'
import type { PlayOptions, Waits } from '../options.ts'
import { replySeed } from '../seeds.ts'
import { waitDefaults } from '../waits.ts'
import { createDialogue, type NextPrompt } from './dialogue.ts'
import { correction, structuralFault } from './malformed.ts'
import { roomFor } from './room.ts'
import { createWatch, type WaitFor, type Watch } from './watch.ts'

const DEFAULT_MIN_REPLY_TOKENS = 2

/** Plays an Env to its end: sample, record, step, go on. Every way out is a reason; only what broke is thrown. */
export async function playEnv(
  env: Env,
  policy: PolicyHandle,
  context: PlayContext,
  options: PlayOptions,
): Promise<EndReason> {
  const alarms = createAlarms(options.clock ?? systemClock)
  const stop = new AbortController()
  const { signal } = context
  const abort = () => {
    // A play that doesn't heed its signal must not keep the process alive by its timers.
    alarms.close()
    stop.abort(signal.reason)
  }
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    return await playWithin({ alarms, stop }, env, policy, context, options)
  } finally {
    signal.removeEventListener('abort', abort)
    alarms.close()
  }
}

/** What bounds a play: deadlines, and the controller of its context's signal. */
export interface Bounds {
  readonly alarms: Alarms
  readonly stop: AbortController
}

/** As `playEnv`, with bounds of the caller's. */
export function playWithin(
  { alarms, stop }: Bounds,
  env: Env,
  policy: PolicyHandle,
  context: PlayContext,
  options: PlayOptions,
): Promise<EndReason> {
  const waits = { ...waitDefaults, ...options.waits }
  const clock = options.clock ?? systemClock
  const watch = createWatch(stop, alarms, waits.graceMs)
  return watch.bound(playOn({ env, policy, context, options, waits, clock, watch }))
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
  const { env, policy, context, options, clock, watch } = player
  const { limits, record } = context
  const { toolMs } = limits
  const { signal } = watch
  const { malformed: malformedPolicy = {}, minReplyTokens = DEFAULT_MIN_REPLY_TOKENS } = options
  const dialogue = createDialogue(policy.renderer, record, options.images ?? 'refuse')

  let replies = 0
  const waitsFor = waitsOf(player, () => replies)
  const sampleOptions = { signal }
  const callId = (index: number) => `call_${calls + index}`

  watch.begin(waitsFor.start)
  const observation = await env.start(signal)
  watch.end()
  await dialogue.open(observation)
  record.count?.('turns')
  let turns = 1
  let sampledTokens = 0
  let calls = 0
  let runCalls = 0
  let malformedInARow = 0

  for (; ; replies += 1) {
    signal.throwIfAborted()
    if (replies >= (limits.replies ?? Infinity)) return cut('replies')
    const hook = options.hooks?.beforeReply
    if (hook !== undefined) {
      watch.begin(waitsFor.hook)
      const injected = await hook({ messages: dialogue.messages, replies, turns, signal })
      watch.end()
      if (injected.length > 0) await dialogue.inject(injected)
    }
    const next = dialogue.prompt()
    const usage = { promptTokens: next.prompt.length, sampledTokens }
    const room = roomFor(limits, usage, policy.sampler.contextWindow, minReplyTokens)
    if ('cut' in room) return cut(room.cut)

    const seed = replySeed(context.seed, replies)
    const startedAt = clock.now()
    watch.begin(waitsFor.sample)
    const samples = await policy.sampler.sample(
      requestOf(policy, next.prompt, room.tokens, seed),
      sampleOptions,
    )
    watch.end()
    const sample = checkSample(samples, replies)
    const ms = clock.now() - startedAt
    sampledTokens += sample.ids.length
    const parsed = policy.renderer.parse(sample.ids, {
      tools: dialogue.tools,
      stop: sample.stop,
      callId,
    })
    const { message } = parsed
    calls += message.toolCalls?.length ?? 0
    const fault = sample.stop === 'length' ? undefined : structuralFault(parsed)
    const isTrained = fault === undefined || malformedPolicy.train !== false
    // Before anything of the reply is acted on: a record of what was about to happen outlives a crash.
    await record.reply(toPlayed(policy, { next, sample, parsed, seed, isTrained, ms }))
    signal.throwIfAborted()

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
    const wanted = countRunnable(message)
    watch.begin(waitsFor.step(message))
    const step = await env.step(
      message,
      toolMs === undefined ? { signal, toolCallsLeft } : { signal, toolCallsLeft, toolMs },
    )
    watch.end()
    if (wanted > 0) {
      const ran = Math.min(wanted, toolCallsLeft)
      runCalls += ran
      record.count?.('tool_calls', ran)
    }
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

function countRunnable({ toolCalls = [] }: AssistantMessage): number {
  let count = 0
  for (const call of toolCalls) if (isRunnable(call)) count += 1
  return count
}

function cut(by: CutReason): EndReason {
  return { kind: 'cut', by }
}

/** What a play waits for, and how long. */
function waitsOf({ policy, context, waits }: Player, replies: () => number) {
  const { toolMs } = context.limits
  const step: WaitFor = {
    phase: 'tool',
    what: () => 'a step of the environment',
    milliseconds: waits.stepMs,
  }
  return {
    start: {
      phase: 'start',
      what: () => 'the start of an environment',
      milliseconds: waits.openMs,
    },
    hook: { phase: 'agent', what: () => 'a hook before a reply', milliseconds: waits.stepMs },
    sample: {
      phase: 'sample',
      what: () => `reply ${replies()} of ${policy.sampler.version.id}`,
      milliseconds: waits.replyMs,
    },
    step({ toolCalls = [] }: AssistantMessage): WaitFor {
      if (toolMs === undefined) return step
      const callsMs = toolMs * toolCalls.length + waits.graceMs
      return callsMs <= waits.stepMs ? step : { ...step, milliseconds: callsMs }
    },
  } as const satisfies Record<string, WaitFor | ((message: AssistantMessage) => WaitFor)>
}

function requestOf(
  { renderer, sampling }: PolicyHandle,
  prompt: RenderedPrompt,
  maxTokens: number,
  seed: number,
): SampleRequest {
  return { prompt, maxTokens, stop: renderer.stop, ...sampling, seeds: [seed] }
}

function checkSample([sample]: readonly Sample[], index: number): Sample {
  if (sample === undefined) throw noSample(`reply ${index}: the sampler gave no sample`)
  const { ids, logprobs } = sample
  if (ids.length !== logprobs.length) {
    throw noSample(`reply ${index} has ${ids.length} ids and ${logprobs.length} log-probabilities`)
  }
  for (let at = 0; at < logprobs.length; at += 1) {
    if (!Number.isFinite(logprobs[at]))
      throw noSample(`reply ${index}: the log-probability of id ${at} is ${logprobs[at]}`)
  }
  return sample
}

function noSample(why: string): EpisodeError {
  return new EpisodeError('sample', new DataError(why))
}

function toPlayed(
  policy: PolicyHandle,
  reply: {
    readonly next: NextPrompt
    readonly sample: Sample
    readonly parsed: ParsedReply
    readonly seed: number
    readonly isTrained: boolean
    readonly ms: number
  },
): PlayedReply {
  const { next, sample, parsed, seed, isTrained, ms } = reply
  return {
    prompt: next.prompt,
    sample,
    version: policy.sampler.version,
    sampling: policy.sampling,
    seed,
    message: parsed.message,
    termination: parsed.termination,
    malformed: parsed.malformed,
    ...(next.restart === undefined ? {} : { restart: next.restart }),
    trained: isTrained,
    ms,
  }
}

/** The next prompt must answer every call once, in order, or say something. */
function checkAnswers({ toolCalls = [] }: AssistantMessage, { messages = [] }: Step): void {
  let answered = 0
  let isAnswered = true
  for (const message of messages) {
    if (message.role !== 'tool') continue
    isAnswered &&= toolCalls[answered]?.id === message.toolCallId
    answered += 1
  }
  if (!isAnswered || answered !== toolCalls.length) {
    const answers = messages.flatMap((one) => (one.role === 'tool' ? [one.toolCallId] : []))
    const calls = toolCalls.map(({ id }) => id)
    throw new EpisodeError(
      'tool',
      new DataError(
        `the environment answered [${answers.join(', ')}]; the reply calls [${calls.join(', ')}]`,
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
