import type { User, UserContext } from '@tiltyard/bundle'
import { type Message, textOf } from '@tiltyard/core'

import type { CustomerOptions } from './data/tasks.ts'
import { playedCustomer } from './played-customer.ts'

/** How often the scripted customer says yes. */
const MAX_CONSENTS = 4

/** Played by the chat `customer`, where there is one; else scripted. */
export function customer(context: UserContext): User {
  const chat = context.chats['customer']
  return chat === undefined ? scriptedCustomer(context) : playedCustomer(context, chat)
}

/**
 * A customer for training, without a model: hands in the ticket, then says yes as long as it is asked something and hasn't been
 * handed over to a person.
 */
function scriptedCustomer({ options }: UserContext): User {
  const ticket = ticketOf(options as unknown as CustomerOptions)
  let consents = 0
  return {
    next: (messages) => {
      if (messages.length === 0) return Promise.resolve({ prompt: ticket })
      if (consents === MAX_CONSENTS || wasHandedOver(messages) || !asks(messages))
        return Promise.resolve(undefined)
      consents += 1
      return Promise.resolve({ prompt: consent })
    },
  }
}

const consent =
  'Yes, that is right, please go ahead. I have nothing to add to my ticket; where it leaves you a choice, take what fits it best.'

/** A task as one message. */
function ticketOf({ scenario, resolved }: CustomerOptions): string {
  const { reason_for_call, known_info, unknown_info, task_instructions } = scenario
  const lines = [
    ['Wish', resolved ?? reason_for_call],
    ['Known', known_info],
    ['Not known', unknown_info],
    // Where the wish changes, these tell how: what it comes to stands above.
    ['Manner', resolved === undefined ? task_instructions : undefined],
  ] as const
  return [
    'A ticket, as the customer wrote it down ("you" is the customer):',
    '',
    ...lines.flatMap(([name, text]) => (text == null || text === '' ? [] : [`${name}: ${text}`])),
    '',
    'The customer can only say yes or no now, and agrees in advance to whatever fulfils this ticket.',
  ].join('\n')
}

function asks(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role === 'assistant')
  return last !== undefined && textOf(last.content).includes('?')
}

/** Whether the agent has given the customer to a person. */
function wasHandedOver(messages: readonly Message[]): boolean {
  return messages.some(
    (message) =>
      message.role === 'assistant' &&
      message.toolCalls?.some(({ name }) => name === 'transfer_to_human_agents'),
  )
}
