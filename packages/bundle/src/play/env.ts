import {
  after,
  type AssistantMessage,
  type EndReason,
  type Env,
  type EpisodeOutcome,
  type Logger,
  type Message,
  type NewTurn,
  type PlayedCall,
  type Sandbox,
  type SandboxProvider,
  type Score,
  silentLogger,
  StateError,
  type Step,
  type SystemMessage,
  systemClock,
  type ToolMessage,
  type ToolSpec,
  UnsupportedError,
  type UserMessage,
} from '@tiltyard/core'

import type { User, UserFactory } from '../author/user.ts'
import type { Bundle } from '../bundle.ts'
import type { Chat } from '../chat/chat.ts'
import type { Task, TurnInput } from '../task.ts'
import { type Calls, episodeCalls, type ToolErrorHook } from './calls.ts'
import { clockOf, factsOf, instanceOf } from './facts.ts'
import { promptOf, systemOf } from './prompts.ts'
import { type EndedEpisode, scoreSteps, stepsOf } from './score.ts'
import { openUser } from './turns.ts'

export interface PlayOptions {
  /** Opens the sandbox of each episode, when the bundle works in one. */
  readonly sandboxes?: SandboxProvider
  /** Users by name, instead of those of the module: for instance one that a model plays. */
  readonly users?: Readonly<Record<string, UserFactory>>
  /** Models that play users and judge, by the names that the bundle knows them by. */
  readonly chats?: Readonly<Record<string, Chat>>
  readonly log?: Logger
  /** Told of what a tool threw and did not mean to, for whoever mends the tool. */
  readonly onToolError?: ToolErrorHook
}

/** How long the end of an episode waits for tool code that doesn't heed its signal, in milliseconds. */
export const END_GRACE_MS = 1_000

/** One play of one task of a bundle. Two envs of a task share nothing that can be written to. */
export function bundleEnv(
  bundle: Bundle,
  task: Task,
  { seed, ...options }: PlayOptions & { readonly seed: number },
): Env {
  const { log = silentLogger, chats = {} } = options
  const facts = factsOf(task)
  const now = clockOf(bundle, task)
  const universe = bundle.universe.open(task.start ?? [])
  const messages: Message[] = []
  const replies: AssistantMessage[] = []
  const calls: PlayedCall[] = []
  const scores = new Map<string, Score>()
  let counted = 0
  let user: User | undefined
  let sandbox: Sandbox | undefined
  let running: Calls | undefined
  let system = bundle.system
  let tools: readonly string[] = [...bundle.tools.keys()]
  let ended: EndReason | undefined
  let closing: Promise<void> | undefined

  const { verified, judged } = stepsOf(bundle, task)

  return {
    specVersion: 'env/1',
    instance: instanceOf(bundle, task, seed),
    start,
    step,
    end,
    score,
    close,
    ...(judged.length === 0 ? {} : { judge }),
  }

  async function start(signal: AbortSignal) {
    if (user !== undefined)
      throw new StateError('an env is started once; open another for another play')
    user = openUser(bundle, task, { ...options, chats, seed, now })
    await openSandbox(signal)
    const { onToolError } = options
    const scope = { bundle, task: facts, universe, sandbox, now, seed, log, onToolError }
    running = episodeCalls(scope)
    const turn = await user.next(messages, signal)
    if (turn === undefined) throw new StateError(`task "${task.id}": its user gave no prompt`)
    enter(turn)
    if (system !== '') messages.push({ role: 'system', content: system })
    messages.push(userMessage(turn))
    return { messages: [...messages], tools: specs() }
  }

  async function step(reply: AssistantMessage, context: Parameters<Env['step']>[1]): Promise<Step> {
    if (running === undefined || user === undefined || ended !== undefined)
      throw new StateError('a reply is taken between start and end only')
    context.signal.throwIfAborted()
    messages.push(reply)
    replies.push(reply)
    if (reply.toolCalls === undefined || reply.toolCalls.length === 0)
      return nextTurn(context.signal)
    const answers = await running.run(reply.toolCalls, tools, context)
    const played = answers.map((answer) => answer.played)
    const shown: ToolMessage[] = answers.map(({ message }) => message)
    calls.push(...played)
    counted += answers.filter((answer) => answer.counted).length
    messages.push(...shown)
    return { done: false, messages: shown, calls: played }
  }

  async function nextTurn(signal: AbortSignal): Promise<Step> {
    const turn = await user!.next([...messages], signal)
    if (turn === undefined) return { done: true }
    const before = { system, tools }
    enter(turn)
    const head: NewTurn = {
      ...(system === before.system ? {} : { system: systemMessage() }),
      ...(sameNames(tools, before.tools) ? {} : { tools: specs() }),
    }
    if (head.system !== undefined) replaceSystem(head.system)
    const prompt = userMessage(turn)
    messages.push(prompt)
    return { done: false, messages: [prompt], turn: head }
  }

  function enter(turn: TurnInput): void {
    system = systemOf(bundle, turn) ?? system
    tools = turn.tools ?? tools
  }

  function systemMessage(): SystemMessage {
    return { role: 'system', content: system }
  }

  function replaceSystem(message: SystemMessage): void {
    if (messages[0]?.role === 'system') messages[0] = message
    else messages.unshift(message)
  }

  function specs(): readonly ToolSpec[] {
    return tools.map((name) => bundle.tools.get(name)!.spec)
  }

  function userMessage(turn: TurnInput): UserMessage {
    return { role: 'user', content: promptOf(bundle, turn) }
  }

  /** Only its opening heeds the play's signal: when the play's time is up, verifiers still work in it. */
  async function openSandbox(signal: AbortSignal): Promise<void> {
    if (bundle.sandbox === undefined) return
    if (options.sandboxes === undefined)
      throw new UnsupportedError(
        `the bundle "${bundle.name}" works in a sandbox; pass a provider of sandboxes`,
      )
    const opening = new AbortController()
    const abort = () => opening.abort(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      const { limits, files } = bundle.sandbox
      sandbox = await options.sandboxes.open({ limits, signal: opening.signal })
      if (closing !== undefined) await sandbox.close()
      signal.throwIfAborted()
      for (const [path, data] of files) await sandbox.write(path, data)
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  async function end(reason: EndReason): Promise<void> {
    if (ended !== undefined) return
    ended = reason
    await user?.close?.()
    if (running === undefined) return
    await settledWithin(END_GRACE_MS, running.settled(), () =>
      log.warn('tool code still runs after its episode ended; it can write nothing any more', {
        task: task.id,
      }),
    )
  }

  async function score(signal: AbortSignal): Promise<EpisodeOutcome> {
    const episode = endedEpisode(sandbox)
    const given = await scoreSteps(episode, verified, scores, signal)
    return { end: episode.end, scores: given, metrics: metrics(episode.end) }
  }

  async function judge(outcome: EpisodeOutcome, signal: AbortSignal): Promise<EpisodeOutcome> {
    const given = await scoreSteps(endedEpisode(undefined), judged, scores, signal)
    return { ...outcome, scores: { ...outcome.scores, ...given } }
  }

  function endedEpisode(box: Sandbox | undefined): EndedEpisode {
    if (ended === undefined) throw new StateError('an episode is scored after its end')
    return {
      bundle,
      task,
      end: ended,
      messages,
      replies,
      calls,
      universe,
      sandbox: box,
      seed,
      chats,
      log,
    }
  }

  function metrics(reason: EndReason): Readonly<Record<string, number>> {
    return {
      messages: messages.length,
      tool_calls: counted,
      tool_errors: calls.filter(({ error }) => error !== undefined).length,
      cut: reason.kind === 'cut' ? 1 : 0,
    }
  }

  async function close(): Promise<void> {
    closing ??= (async () => await sandbox?.close())()
    await closing
  }
}

/** Waits for the work, or says that it is late. */
async function settledWithin(
  milliseconds: number,
  work: Promise<void>,
  late: () => void,
): Promise<void> {
  let callOff = () => {}
  const isLate = new Promise<void>((resolve) => {
    callOff = after(systemClock, milliseconds, () => {
      late()
      resolve()
    })
  })
  await Promise.race([work, isLate])
  callOff()
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((name, index) => name === right[index])
}
