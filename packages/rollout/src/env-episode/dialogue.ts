import {
  hasImages,
  isRefusal,
  type AssistantMessage,
  type Message,
  type NewTurn,
  type Observation,
  type PlayRecorder,
  type RenderedPrompt,
  type Renderer,
  type Sample,
  type SystemMessage,
  type ToolMessage,
  type ToolSpec,
  type UserMessage,
} from '@tiltyard/core'

import { EpisodeError } from '../episode-error.ts'
import { showable } from './images.ts'

/** A reply with what follows it. */
interface Continuation {
  readonly sample: Sample
  /** Undefined: the reply can't be shown again; it stands in the tokens only. */
  readonly message: AssistantMessage | undefined
  readonly next: readonly (ToolMessage | UserMessage)[]
}

/** A prompt to sample from, and why it does not go on from the one before, if so. */
export interface NextPrompt {
  readonly prompt: RenderedPrompt
  readonly restart?: string
}

/**
 * The conversation of one episode: messages for the record and for rendering anew, and the prompt that grows by exactly what was
 * sampled and what followed. Rendering anew happens only where head or template force it, and says why.
 */
export interface Dialogue {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  open(observation: Observation): Promise<void>
  /** Takes the reply just sampled and what followed it. `recorded` are the calls that were carried out. */
  follow(continuation: Continuation): void
  /** A new turn's head; what is equal to the present one changes nothing. */
  changeHead(turn: NewTurn): Promise<void>
  /** Adds messages that came from neither policy nor environment. */
  inject(messages: readonly UserMessage[]): Promise<void>
  /** The prompt of the next reply. */
  prompt(): NextPrompt
  /** Messages as the renderer can show them; replaced images are counted. */
  shown<M extends Message>(messages: readonly M[]): readonly M[]
}

export function createDialogue(
  renderer: Renderer,
  record: PlayRecorder,
  images: 'refuse' | 'placeholder',
): Dialogue {
  let messages: Message[] = []
  let tools: readonly ToolSpec[] = []
  let last: RenderedPrompt | undefined
  let pending: Continuation | undefined
  let injected: UserMessage[] = []
  let changed: string | undefined

  const shown = <M extends Message>(given: readonly M[]): readonly M[] => {
    if (renderer.capabilities.images || !hasImages(given)) return given
    const { messages: visible, replaced } = rendering(() => showable(given, renderer, images))
    if (replaced > 0) record.count?.('images_replaced', replaced)
    return visible
  }
  const whole = (): RenderedPrompt =>
    renderer.prompt(tools.length > 0 ? { messages, tools } : { messages })
  const next = (): NextPrompt => {
    if (last === undefined || pending === undefined) return { prompt: whole() }
    if (changed !== undefined) return { prompt: whole(), restart: changed }
    const { sample, next: following } = pending
    const extended = renderer.extend(
      last,
      { ids: sample.ids, stop: sample.stop },
      { messages: injected.length === 0 ? following : [...following, ...injected] },
    )
    if (isRefusal(extended)) return { prompt: whole(), restart: extended.refused }
    return { prompt: extended }
  }

  return {
    get messages() {
      return messages
    },
    get tools() {
      return tools
    },
    shown,

    async open(observation) {
      messages = [...shown(observation.messages)]
      tools = observation.tools ?? []
      await record.conversation([...messages], tools)
    },

    follow(continuation) {
      if (continuation.message !== undefined) messages.push(continuation.message)
      messages.push(...continuation.next)
      pending = continuation
    },

    async changeHead({ system, tools: newTools }) {
      const newSystem = system === undefined ? undefined : shown([system])[0]!
      const changes: string[] = []
      if (newSystem !== undefined && !isSame(newSystem, messages.find(isSystem))) {
        messages = [newSystem, ...messages.filter((message) => !isSystem(message))]
        changes.push('system prompt')
      }
      if (newTools !== undefined && !isSame(newTools, tools)) {
        tools = newTools
        changes.push('tools')
      }
      if (changes.length === 0) return
      changed = `the ${changes.join(' and ')} changed`
      await record.conversation([...messages], tools)
    },

    async inject(given) {
      messages.push(...given)
      injected = [...given]
      await record.observation(given, [])
    },

    prompt() {
      const result = rendering(next)
      last = result.prompt
      injected = []
      changed = undefined
      return result
    },
  }
}

/** What rendering throws is a failure of the phase `render`. */
function rendering<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EpisodeError('render', error)
  }
}

function isSystem(message: Message): message is SystemMessage {
  return message.role === 'system'
}

function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}
