import {
  deriveSeed,
  TiltyardError,
  isRefusal,
  promptIds,
  createPrompt,
  tokenChunk,
  type AssistantMessage,
  type Conversation,
  type Message,
  type RenderedPrompt,
  type Renderer,
  type Reply,
  type SystemMessage,
  type ToolMessage,
  type UserMessage,
} from '@tiltyard/core'

import { invalidRequest, rendererFailed } from '../errors.ts'
import {
  callIdsKey,
  contextKey,
  echoDifference,
  messageIdentity,
  type EchoTolerance,
} from './identity.ts'

/** Why a prompt does not go on from the tokens before it. */
export type ForkCause =
  /** Another conversation: a sub-agent, a side call, a history replaced by a summary. */
  | 'new_conversation'
  /** The same messages with other tools, or for another policy. */
  | 'context_changed'
  | 'system_changed'
  | 'edited_text'
  | 'edited_args'
  | 'edited_reasoning'
  /** The template, or the client, drops reasoning that was sampled. */
  | 'reasoning_stripped'
  | 'template_rewrite'
  /** The same prompt was sampled again. */
  | 'sibling'
  /** A second way to go on from a reply. */
  | 'branch'

export interface SampledReply extends Reply {
  readonly prompt: RenderedPrompt
  /** As the client got it: what its echo is compared with. */
  readonly sent: AssistantMessage
}

/** A message in its place. Paths from the root are conversations. */
interface GraphNode {
  /** Of the path: equal for equal conversations, whatever order they came in. */
  readonly hash: number
  readonly reply: SampledReply | undefined
  /** Set when a prompt ended here. */
  rendered: Rendered | undefined
  /** Samples begun under this prompt. */
  begun: number
  /** Whether a reply already goes on from this one. */
  extended: boolean
  readonly sampled: GraphNode[]
  /** Messages that were not sampled; made when there is one. */
  given: Map<string, GraphNode> | undefined
}

/** A prompt, and what it goes on from. */
interface Rendered {
  readonly prompt: RenderedPrompt
  /** The reply whose prompt and ids the prompt starts with. */
  readonly continues: GraphNode | undefined
  /** Why there is none, unless it is the first prompt of all. */
  readonly cause: ForkCause | undefined
}

/** How a request will be sampled: which tokens, and where they belong. */
interface Plan extends Rendered {
  /** Where the prompt ends. */
  readonly node: GraphNode
  /** What came after the reply that it goes on from. */
  readonly next: readonly Message[]
  /** Tokens of the prompt that an earlier call of the attempt had already. */
  readonly reused: number
  /** Samples begun under this prompt before. */
  readonly ordinal: number
}

/** What a client that drops reasoning means by it: nothing (it is put back from the record), or just that. */
export type ReasoningMode = 'restore' | 'client'

export interface CallGraphOptions {
  readonly tolerance: EchoTolerance
  readonly reasoning: ReasoningMode
}

/** The conversations of one attempt, by what was really sampled. Nothing in it waits, so calls can't overtake each other inside. */
export interface CallGraph {
  /** Messages kept. */
  readonly nodes: number
  /** Finds where the conversation stands and renders what is new. @throws ApiError */
  plan(alias: string, renderer: Renderer, conversation: Conversation): Plan
  /** Takes in a sampled reply; gives the cause if it does not go on from the reply before it on its branch. */
  commit(plan: Plan, reply: SampledReply): { readonly node: GraphNode; readonly cause?: ForkCause }
}

export function createCallGraph({ tolerance, reasoning }: CallGraphOptions): CallGraph {
  const roots = new Map<string, GraphNode>()
  let nodes = 0
  let prompts = 0
  const add = (hash: number, reply?: SampledReply): GraphNode => {
    nodes += 1
    const rendered = undefined
    return { hash, reply, rendered, begun: 0, extended: false, sampled: [], given: undefined }
  }
  const follow = (from: GraphNode, message: Message): GraphNode => {
    const key = givenKey(message)
    const known = from.given?.get(key)
    if (known !== undefined) return known
    const node = add(deriveSeed(from.hash, key))
    from.given ??= new Map()
    from.given.set(key, node)
    return node
  }

  return {
    get nodes() {
      return nodes
    },

    plan(alias, renderer, { messages, tools = [] }) {
      checkLast(messages)
      const key = contextKey(alias, tools)
      const root = roots.get(key) ?? add(deriveSeed(0, key))
      const { path, edit } = walk(root, messages, tolerance, reasoning)
      const first = prompts === 0 ? undefined : (edit ?? beginning(roots, key, messages))
      roots.set(key, root)
      let node = path.at(-1)!
      for (const message of messages.slice(path.length - 1)) node = follow(node, message)

      const at = path.findLastIndex(({ reply }) => reply !== undefined)
      const anchor = at === -1 ? undefined : path[at]
      const ordinal = node.begun
      const planned = (rendered: Rendered, reused: number): Plan => {
        const next = rendered.continues === undefined ? messages : messages.slice(at)
        return { ...rendered, node, next, reused, ordinal }
      }
      if (node.rendered !== undefined) return planned(node.rendered, node.rendered.prompt.length)

      prompts += 1
      const next = anchor === undefined ? undefined : added(messages.slice(at))
      const extended = next && extend(renderer, anchor!.reply!, next)
      if (extended !== undefined && !isRefusal(extended)) {
        node.rendered = { prompt: extended, continues: anchor, cause: undefined }
        return planned(node.rendered, end(anchor!.reply!))
      }

      const shown = messages.map((message, index) => {
        const sent = path[index + 1]?.reply?.sent
        return sent === undefined || reasoning === 'client' ? message : sent
      })
      const whole = guarded(() => renderer.prompt({ messages: shown, tools }))
      const behind = anchor === undefined ? undefined : continuation(anchor.reply!, whole)
      if (behind !== undefined) {
        node.rendered = { prompt: behind, continues: anchor, cause: undefined }
        return planned(node.rendered, end(anchor!.reply!))
      }
      const cause =
        next === undefined
          ? anchor === undefined
            ? first
            : (edit ?? 'edited_text')
          : refusalCause(anchor!.reply!, next)
      node.rendered = { prompt: whole, continues: undefined, cause }
      return planned(node.rendered, 0)
    },

    commit(plan, reply) {
      const node = add(deriveSeed(plan.node.hash, messageIdentity(reply.sent)), reply)
      const isSibling = plan.node.sampled.length > 0
      plan.node.sampled.push(node)
      if (isSibling) return { node, cause: 'sibling' }
      const { continues: before, cause } = plan
      if (before === undefined) return cause === undefined ? { node } : { node, cause }
      if (before.extended) return { node, cause: 'branch' }
      before.extended = true
      return { node }
    },
  }
}

interface Walk {
  /** The nodes of the messages that are known, the root first. */
  readonly path: readonly GraphNode[]
  /** How the first unknown message differs from a reply that stands in its place. */
  readonly edit: ForkCause | undefined
}

function walk(
  root: GraphNode,
  messages: readonly Message[],
  tolerance: EchoTolerance,
  reasoning: ReasoningMode,
): Walk {
  const path = [root]
  for (const message of messages) {
    const from = path.at(-1)!
    let edit: ForkCause | undefined
    let found: GraphNode | undefined
    if (message.role === 'assistant') {
      const echo = echoed(from, message, tolerance, reasoning)
      if (typeof echo === 'string') edit = echo
      else found = echo
    }
    found ??= from.given?.get(givenKey(message))
    if (found === undefined) return { path, edit }
    path.push(found)
  }
  return { path, edit: undefined }
}

/** The reply that a message is the echo of: by the ids of its calls, else by its text, the newest first; or how it differs. */
function echoed(
  from: GraphNode,
  message: AssistantMessage,
  tolerance: EchoTolerance,
  reasoning: ReasoningMode,
): GraphNode | ForkCause | undefined {
  const ids = callIdsKey(message)
  let difference: ForkCause | undefined
  for (const node of from.sampled.toReversed()) {
    const { sent } = node.reply!
    if (callIdsKey(sent) !== ids) continue
    const found =
      echoDifference(sent, message, tolerance) ?? reasoningDifference(sent, message, reasoning)
    if (found === undefined) return node
    difference ??= found
  }
  return difference ?? (from.sampled.length > 0 ? 'edited_text' : undefined)
}

function reasoningDifference(
  sent: AssistantMessage,
  echo: AssistantMessage,
  mode: ReasoningMode,
): ForkCause | undefined {
  if (sent.reasoning === echo.reasoning) return undefined
  if (echo.reasoning === undefined) return mode === 'client' ? 'reasoning_stripped' : undefined
  return 'edited_reasoning'
}

/** Why a conversation that goes on from no reply is not the one before it. */
function beginning(
  roots: ReadonlyMap<string, GraphNode>,
  key: string,
  messages: readonly Message[],
): ForkCause {
  const [head, next] = messages
  if (head === undefined) return 'new_conversation'
  const elsewhere = [...roots].some(
    ([other, root]) => other !== key && root.given?.has(givenKey(head)),
  )
  if (elsewhere && !roots.has(key)) return 'context_changed'
  const root = roots.get(key)
  if (root === undefined || head.role !== 'system' || next === undefined) return 'new_conversation'
  if (root.given?.has(givenKey(head))) return 'new_conversation'
  const under = [...(root.given?.values() ?? [])].some(({ given }) => given?.has(givenKey(next)))
  return under ? 'system_changed' : 'new_conversation'
}

function refusalCause({ sent }: SampledReply, next: readonly Message[]): ForkCause {
  const isNewTurn = next.some(({ role }) => role === 'user')
  return sent.reasoning !== undefined && isNewTurn ? 'reasoning_stripped' : 'template_rewrite'
}

type Added = readonly (ToolMessage | UserMessage | SystemMessage)[]

/** The messages if none is an assistant's. */
function added(messages: readonly Message[]): Added | undefined {
  return messages.every((message) => message.role !== 'assistant') ? messages : undefined
}

function extend(renderer: Renderer, { prompt, ids, stop }: SampledReply, messages: Added) {
  return guarded(() => renderer.extend(prompt, { ids, stop }, { messages }))
}

/** A wholly rendered prompt as a continuation of a reply, if it starts with that reply's prompt and ids. */
function continuation(
  { prompt, ids }: SampledReply,
  whole: RenderedPrompt,
): RenderedPrompt | undefined {
  if (whole.length <= prompt.length + ids.length) return undefined
  if ([...prompt.chunks(), ...whole.chunks()].some(({ type }) => type === 'image')) return undefined
  const all = promptIds(whole)
  if (!promptIds(prompt).every((id, index) => all[index] === id)) return undefined
  if (!ids.every((id, index) => all[prompt.length + index] === id)) return undefined
  return createPrompt([tokenChunk(all.subarray(prompt.length))], prompt)
}

/** Where a reply's tokens end. */
function end({ prompt, ids }: SampledReply): number {
  return prompt.length + ids.length
}

function givenKey(message: Message): string {
  const identity = messageIdentity(message)
  if (message.role !== 'assistant' || message.reasoning === undefined) return identity
  return `${identity}\u0001${message.reasoning}`
}

function checkLast(messages: readonly Message[]): void {
  if (messages.length === 0)
    throw invalidRequest('there is no message; send at least one', 'messages')
  if (messages.at(-1)!.role === 'assistant')
    throw invalidRequest(
      'the last message is an assistant message, and this model can’t go on writing one; end with a user or tool message',
      'messages',
    )
}

/** A renderer's ConfigError is the conversation's fault; anything else is the renderer's. */
function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (TiltyardError.is(error, 'CONFIG')) throw invalidRequest(error.message, 'messages')
    throw rendererFailed(error)
  }
}
