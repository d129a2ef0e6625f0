import type { Chat, ChatMessage, User, UserContext } from '@tiltyard/bundle'
import { type Message, textOf } from '@tiltyard/core'

import type { CustomerOptions } from './data/tasks.ts'

/** What the agent is taken to have said first, as in the benchmark. */
const greeting = 'Hi! How can I help you today?'

/** What the customer writes to end the conversation: satisfied, handed over, or asked for what its scenario doesn't say. */
const endings = ['###STOP###', '###TRANSFER###', '###OUT-OF-SCOPE###'] as const

const guidelines = `You are a customer who writes to the support of an online shop. Play the scenario below, and only that.
- Write one message at a time, as a person would: short, in your own words, not copied from the scenario.
- Tell what is needed for the step at hand; keep the rest until you are asked for it or it is its turn.
- Know only what the scenario says. What it doesn't say, you don't know or don't remember; make nothing up.
- When all that you wanted is done, answer with ${endings[0]} alone.
- When you are handed over to a person, answer with ${endings[1]} alone.
- When you can't go on because the scenario doesn't say what you would do, answer with ${endings[2]} alone.`

/** A customer that a model plays: for evaluation by conversation. It sees what is said, and no calls. */
export function playedCustomer({ options, random }: UserContext, chat: Chat): User {
  const system = `${guidelines}\n\n<scenario>\n${scenarioText(options as unknown as CustomerOptions)}\n</scenario>`
  return {
    async next(messages, signal) {
      const said = await chat.reply(asSeenByCustomer(system, messages), {
        signal,
        seed: random.integer(2 ** 32),
      })
      return endings.some((ending) => said.includes(ending)) ? undefined : { prompt: said }
    },
  }
}

function scenarioText({ scenario }: CustomerOptions): string {
  const { domain, reason_for_call, known_info, unknown_info, task_instructions } = scenario
  const lines = [
    ['Domain', domain],
    ['Reason for call', reason_for_call],
    ['Known info', known_info],
    ['Unknown info', unknown_info],
    ['Task instructions', task_instructions],
  ] as const
  return lines
    .flatMap(([name, text]) => (text == null || text === '' ? [] : [`${name}: ${text}`]))
    .join('\n')
}

/** The conversation with its sides changed. */
function asSeenByCustomer(system: string, messages: readonly Message[]): readonly ChatMessage[] {
  const seen: ChatMessage[] = [
    { role: 'system', content: system },
    { role: 'user', content: greeting },
  ]
  for (const message of messages) {
    const content = textOf(message.content, '[image]')
    if (message.role === 'user') seen.push({ role: 'assistant', content })
    else if (message.role === 'assistant' && (content !== '' || message.toolCalls === undefined))
      seen.push({ role: 'user', content: content === '' ? '(no answer)' : content })
  }
  return seen
}
