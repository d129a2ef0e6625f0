import { chatTools, system, toolResult, user, type Bench, type WireMessage } from './harness.ts'

/** Lets a bench's policy call a tool so many times, sending back each reply as `echo` makes it; gives all that was said. */
export async function loop(
  { chat }: Bench,
  turns: number,
  echo: (message: WireMessage) => object = (message) => message,
): Promise<object[]> {
  const messages: object[] = [system('s'), user('go')]
  for (let turn = 0; turn < turns; turn += 1) {
    const { choices } = await chat(messages, { tools: chatTools('look') })
    const said = choices[0]!.message
    messages.push(echo(said))
    for (const call of said.tool_calls ?? []) messages.push(toolResult(call.id, `seen ${turn}`))
  }
  return messages
}

export function withoutReasoning(message: WireMessage): object {
  const { reasoning_content: _content, reasoning: _reasoning, ...rest } = message
  return rest
}

/** A client that sends calls back otherwise than it got them. */
export const withCalls =
  (edit: { readonly name?: string; readonly arguments?: string }) => (message: WireMessage) => ({
    ...message,
    tool_calls: message.tool_calls!.map((call) => ({
      ...call,
      function: { ...call.function, ...edit },
    })),
  })
