import type { JsonObject } from '@tiltyard/core'

/** Items of the Responses dialect that later requests of the attempt may refer to by id. */
export interface ItemMemory {
  item(id: string): JsonObject | undefined
  /** All items of a conversation up to and with a response's own. */
  response(id: string): readonly JsonObject[] | undefined
  keep(responseId: string, input: readonly JsonObject[], output: readonly JsonObject[]): void
}

const MAX_RESPONSES = 1_000

export function createItemMemory(): ItemMemory {
  const items = new Map<string, JsonObject>()
  const responses = new Map<
    string,
    { readonly input: readonly JsonObject[]; readonly output: readonly JsonObject[] }
  >()
  return {
    item: (id) => items.get(id),
    response(id) {
      const found = responses.get(id)
      return found && [...found.input, ...found.output]
    },
    keep(responseId, input, output) {
      responses.set(responseId, { input, output })
      for (const item of output) if (typeof item['id'] === 'string') items.set(item['id'], item)
      if (responses.size <= MAX_RESPONSES) return
      const [oldest, { output: forgotten }] = responses.entries().next().value!
      responses.delete(oldest)
      for (const item of forgotten) if (typeof item['id'] === 'string') items.delete(item['id'])
    },
  }
}
