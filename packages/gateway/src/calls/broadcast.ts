/** Items that any number of readers follow from the first one, each at its own pace. A slow reader holds up nobody. */
export interface Broadcast<T> {
  push(item: T): void
  end(): void
  fail(error: Error): void
  read(): AsyncGenerator<T, void, undefined>
}

export function createBroadcast<T>(): Broadcast<T> {
  const items: T[] = []
  let ended = false
  let failure: Error | undefined
  let waiting: (() => void)[] = []
  const wake = () => {
    const woken = waiting
    waiting = []
    for (const resume of woken) resume()
  }
  return {
    push(item) {
      items.push(item)
      wake()
    },
    end() {
      ended = true
      wake()
    },
    fail(error) {
      failure = error
      wake()
    },
    async *read() {
      for (let index = 0; ;) {
        if (index < items.length) {
          yield items[index]!
          index += 1
        } else if (failure !== undefined) throw failure
        else if (ended) return
        else await new Promise<void>((resume) => waiting.push(resume))
      }
    },
  }
}
