/** Maps in order, with up to `ahead` calls under way before their turn. */
export async function* mapAhead<T, R>(
  items: Iterable<T>,
  ahead: number,
  map: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const queue: Promise<R>[] = []
  for (const item of items) {
    const result = map(item)
    // Whoever gets to it sees the failure; until then nobody is there to catch it.
    result.catch(() => {})
    queue.push(result)
    if (queue.length >= ahead) yield await queue.shift()!
  }
  for (const result of queue) yield await result
}

/** Works on all items, `atOnce` at a time. Rejects with the first failure, once nothing is under way any more. */
export async function forEach<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values()
  const failures: unknown[] = []
  const lane = async () => {
    for (const item of rest) {
      if (failures.length > 0) return
      await work(item).catch((error: unknown) => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane))
  if (failures.length > 0) throw failures[0]
}
