/** Messages for one reader, in the order in which they were pushed. */
export interface Inbox<Message> {
  push(message: Message): void
  take(): Promise<Message>
}

export function createInbox<Message>(): Inbox<Message> {
  const waiting: Message[] = []
  let wake: (() => void) | undefined
  return {
    push(message) {
      waiting.push(message)
      wake?.()
      wake = undefined
    },
    async take() {
      while (waiting.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return waiting.shift()!
    },
  }
}
