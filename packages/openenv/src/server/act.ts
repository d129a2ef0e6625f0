import type { JsonValue, ToolSpec } from '@tiltyard/core'

import type { Action, Observed } from '../wire/frames.ts'
import { END_TURN, endTurnTool, listedTool } from '../wire/tools.ts'
import type { Session } from './sessions.ts'

/** Carries out a step's action. */
export async function act(session: Session, action: Action): Promise<Observed> {
  if (action.type === 'list_tools') {
    const tools: JsonValue[] = (await toolList(session)).map(listedTool)
    return { observation: { tools }, reward: null, done: false }
  }
  if (action.type === 'end_turn')
    return await session.run('the end of a turn', (play, signal) =>
      play.endTurn(action.text, signal),
    )
  const { tool_name: name, arguments: args } = action
  return await session.run(`tool "${name}"`, async (play, signal) => {
    const isOwn = name === END_TURN && !(await play.tools(signal)).some(isEndTurn)
    if (!isOwn) return await play.callTool(name, args, signal)
    const { text } = args
    return await play.endTurn(typeof text === 'string' ? text : '', signal)
  })
}

/** The tools of the episode, and `end_turn` for clients that can only call tools, unless the tasks have one of that name. */
export async function toolList(session: Session): Promise<readonly ToolSpec[]> {
  const tools = await session.run('the list of tools', (play, signal) => play.tools(signal))
  return tools.some(isEndTurn) ? tools : [...tools, endTurnTool]
}

function isEndTurn({ name }: ToolSpec): boolean {
  return name === END_TURN
}
