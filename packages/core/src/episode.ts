import type { Contract } from './contract.ts'
import type { EndReason, Limits } from './end.ts'
import type { Env, PlayedCall } from './env.ts'
import type { AssistantMessage, MalformedCall, Message, ToolSpec } from './messages.ts'
import type { Renderer, Termination } from './renderer.ts'
import type { PolicyVersion, Sample, Sampler } from './sampler.ts'
import type { EpisodeOutcome } from './score.ts'
import type { RenderedPrompt } from './tokens.ts'

/** How a policy is asked. Recorded with each reply. */
export interface SamplingSettings {
  /** Default 1. Training refuses other values unless told to allow them. */
  readonly temperature?: number
  readonly topK?: number
  readonly topP?: number
}

/** One fixed policy with the renderer that speaks to it. */
export interface PolicyHandle {
  readonly sampler: Sampler
  readonly renderer: Renderer
  readonly sampling: SamplingSettings
}

/** A reply with all that training needs of it. */
export interface PlayedReply {
  readonly prompt: RenderedPrompt
  readonly sample: Sample
  readonly version: PolicyVersion
  readonly sampling: SamplingSettings
  /** uint32 that the sample was drawn with; absent when the backend chose. */
  readonly seed?: number
  readonly message: AssistantMessage
  readonly termination: Termination
  readonly malformed: readonly MalformedCall[]
  /** Why the prompt does not continue the reply before it; absent for a first reply and for one that does. */
  readonly restart?: string
  /** False: the tokens are context, and are never trained. */
  readonly trained: boolean
  /** Which agent, and what for, when an agent behind the gateway said so. */
  readonly agent?: string
  readonly purpose?: string
  /** Wall time of sampling. */
  readonly ms: number
}

/** Takes down what happens in an episode, in order. Awaited: when it resolves the record has accepted it. */
export interface PlayRecorder {
  /** The conversation as it is before a first reply, and again when its head changes. */
  conversation(messages: readonly Message[], tools: readonly ToolSpec[]): Promise<void>
  /** Before any of its calls runs. */
  reply(reply: PlayedReply): Promise<void>
  /** Tool results and later prompts, with the calls that were carried out. */
  observation(messages: readonly Message[], calls: readonly PlayedCall[]): Promise<void>
  /** Adds to a plain number about the play, for the episode's metrics. Default amount: 1. */
  count?(name: string, amount?: number): void
}

export interface PlayContext {
  readonly signal: AbortSignal
  /** Base of every random choice of the play: reply k is sampled with a seed derived from it. */
  readonly seed: number
  readonly limits: Limits
  readonly record: PlayRecorder
}

/**
 * One play of one task, used once; the general form that carries any agent. Order: `play`, `end` (once effective, on every
 * path), `score`, `close`.
 */
export interface Episode extends Contract<'episode/1'> {
  /** As `Env.instance`. */
  readonly instance?: string
  /** Plays to the end. Resolves with the reason; rejects when environment or service failed. Stops soon after the signal. */
  play(policy: PolicyHandle, context: PlayContext): Promise<EndReason>
  /** The first call takes effect, later ones return its promise. When it resolves nothing of the agent runs any more. */
  end(reason: EndReason): Promise<void>
  /** Scores without playing again; may be called again after it failed. */
  score(signal: AbortSignal): Promise<EpisodeOutcome>
  close(): Promise<void>
  /** As `Env.judge`. */
  judge?(outcome: EpisodeOutcome, signal: AbortSignal): Promise<EpisodeOutcome>
}

/** A task by its id. Two members of a group have equal fingerprints. */
export interface TaskRef {
  readonly id: string
  /** Hash of the task with everything that it is played with, seed apart. */
  readonly fingerprint: string
  readonly tags?: readonly string[]
}

/** What a player can do; a source refuses, before anything is played, tasks that need more. */
export interface PlayNeeds {
  readonly tools: boolean
  readonly images: boolean
  /** Later turns may change system prompt and tools. */
  readonly changedHead: boolean
}

export interface OpenOptions {
  /** Of the universe and of the task's random choices. The same for all members of a group and all attempts. */
  readonly seed: number
  readonly signal: AbortSignal
}

/** Where episodes come from: a bundle, an agent function, a remote environment. */
export interface TaskSource extends Contract<'task-source/1'> {
  readonly name: string
  /** Hash of all tasks and of what they are played with. Part of a run's identity. */
  readonly fingerprint: string
  /** Names of the scoring steps that its tasks record. */
  readonly steps: readonly string[]
  /** `all`, or the name of an eval. In a fixed order. @throws NotFoundError naming the splits that exist. */
  tasks(split: string): AsyncIterable<TaskRef>
  /** Once, before the first `open`. @throws ConfigError listing the tasks that need what the player lacks. */
  prepare(needs: PlayNeeds, signal: AbortSignal): Promise<void>
  /** A fresh play, isolated from every other. */
  open(task: TaskRef, options: OpenOptions): Promise<Env | Episode>
  close(): Promise<void>
}
