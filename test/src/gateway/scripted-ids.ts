import { promptIds, type Sampler, type Tokenizer } from '@tiltyard/core'

/** Ids of a reply as a model samples it: markers are single ids. */
function sampledIds(tokenizer: Tokenizer, reply: string): Int32Array {
  const markers = [...tokenizer.markers.keys()].toSorted((a, b) => b.length - a.length)
  const escaped = markers.map((marker) => marker.replaceAll(/[|\\{}()[\]^$+*?.]/g, String.raw`\$&`))
  const parts = reply.split(new RegExp(`(${escaped.join('|')})`))
  return Int32Array.from(
    parts.flatMap((part) => {
      const id = tokenizer.markers.get(part)
      return id === undefined ? [...tokenizer.encode(part)] : [id]
    }),
  )
}

/** Gives these replies in order, as ids of a real vocabulary; `prompts` grows with each. */
export function idsSampler(
  tokenizer: Tokenizer,
  replies: readonly string[],
): {
  readonly sampler: Sampler
  readonly prompts: readonly Int32Array[]
  readonly ids: readonly Int32Array[]
} {
  const ids = replies.map((reply) => sampledIds(tokenizer, reply))
  const prompts: Int32Array[] = []
  const sampler: Sampler = {
    specVersion: 'sampler/1',
    version: { id: 'scripted', step: 0 },
    contextWindow: 10_000,
    async sample({ prompt, onTokens }) {
      const sampled = ids[Math.min(prompts.length, ids.length - 1)]!
      prompts.push(promptIds(prompt))
      const logprobs = new Float32Array(sampled.length).fill(-1)
      onTokens?.(0, sampled, logprobs)
      return [{ ids: sampled, logprobs, stop: 'stop' }]
    },
    logprobs: async (prompt) => new Float32Array(prompt.length),
    async close() {},
  }
  return { sampler, prompts, ids }
}
