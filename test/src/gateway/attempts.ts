import { promptIds, type PlayedReply, type PlayRecorder, type Sampler } from '@tiltyard/core'
import {
  createGateway,
  type AgentModel,
  type Attempt,
  type AttemptOptions,
  type Gateway,
  type GatewayOptions,
} from '@tiltyard/gateway'
import { charRenderer } from '@tiltyard/testkit'

export interface OpenedAttempt {
  readonly gateway: Gateway
  readonly attempt: Attempt
  readonly replies: readonly PlayedReply[]
  readonly model: AgentModel
  /** HTTP requests that the agent made. */
  readonly requests: () => number
}

/** An attempt over a sampler, reached by `fetch`, or by the network once the gateway is served. */
export function openAttempt(
  sampler: Sampler,
  options: { readonly gateway?: GatewayOptions; readonly attempt?: Partial<AttemptOptions> } = {},
): OpenedAttempt {
  const replies: PlayedReply[] = []
  const record: PlayRecorder = {
    conversation: async () => {},
    observation: async () => {},
    reply: async (reply) => void replies.push(reply),
  }
  const gateway = createGateway(options.gateway)
  const policy = { sampler, renderer: charRenderer(), sampling: {} }
  const attempt = gateway.open({ rollout: 'r', policy, record, ...options.attempt })
  let requests = 0
  return {
    gateway,
    attempt,
    replies,
    requests: () => requests,
    model: {
      get baseURL() {
        return gateway.baseURL(attempt)
      },
      apiKey: attempt.key,
      name: 'policy',
      fetch: (...given) => {
        requests += 1
        return gateway.fetch(...given)
      },
    },
  }
}

/** Whether each prompt begins with the prompt and the sampled ids of the reply before it. */
export function isUnbroken(replies: readonly PlayedReply[]): boolean {
  return replies.every((reply, index) => {
    const before = replies[index - 1]
    if (before === undefined) return true
    const start = [...promptIds(before.prompt), ...before.sample.ids]
    const all = promptIds(reply.prompt)
    return start.every((id, at) => all[at] === id)
  })
}
