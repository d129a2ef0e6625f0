import { type AssistantMessage, isScored, type JsonObject, TiltyardError } from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import { type PlayTaskOptions, playTask, type TaskPlay } from '../play/play-task.ts'
import { authorFailure } from './failure.ts'

export interface TranscriptCall {
  readonly name: string
  readonly arguments: JsonObject
}

/** What an agent does, reply by reply: a text, a call, or several calls in one reply. */
export type Transcript = readonly (string | TranscriptCall | readonly TranscriptCall[])[]

/**
 * Plays a task as the transcript says and compares its scores with those expected; steps that aren't named don't count. A
 * transcript that ends before the task does leaves the episode cut.
 * @throws TiltyardError `EXPECTED_SCORE` that shows each score beside the expected one, and the calls with their results.
 */
export async function expectScore(
  bundle: Bundle,
  taskId: string,
  transcript: Transcript,
  expected: Readonly<Record<string, number | 'unscored'>>,
  options: PlayTaskOptions = {},
): Promise<TaskPlay> {
  const failures: string[] = []
  const play = await playTask(bundle, taskId, transcriptPlayer(transcript), {
    ...options,
    onToolError: (error, call) => {
      const { error: text, at = 'the tool' } = authorFailure(bundle, error)
      failures.push(`${call.tool} threw at ${at}: ${text}`)
    },
  })
  const { scores } = play.outcome
  const wrong = Object.entries(expected).flatMap(([step, wanted]) => {
    const score = scores[step]
    if (score === undefined)
      return [`${step}: expected ${wanted}, and the task records no such step`]
    const found = isScored(score) ? score.value : 'unscored'
    if (found === wanted) return []
    const why = isScored(score) ? score.note : score.unscored
    return [`${step}: expected ${wanted}, got ${found}${why === undefined ? '' : ` (${why})`}`]
  })
  if (wrong.length === 0) return play
  const calls = play.calls.map(
    ({ name, arguments: args, result }) => `${name}(${JSON.stringify(args)}) → ${result}`,
  )
  throw new TiltyardError(
    'EXPECTED_SCORE',
    [`task "${taskId}"`, ...wrong, ...failures, 'calls:', ...calls].join('\n  '),
  )
}

function transcriptPlayer(transcript: Transcript) {
  let next = 0
  let called = 0
  return (): AssistantMessage | undefined => {
    const entry = transcript[next]
    next += 1
    if (entry === undefined) return undefined
    if (typeof entry === 'string') return { role: 'assistant', content: entry }
    const calls = 'name' in entry ? [entry] : entry
    const toolCalls = calls.map((call) => {
      called += 1
      return { id: `call_${called}`, ...call }
    })
    return { role: 'assistant', content: '', toolCalls }
  }
}
