import type {
  ParsedReply,
  ReplyContext,
  ReplyStream,
  StopReason,
  Termination,
  Tokenizer,
} from '@tiltyard/core'
import { splitReply, type Marker } from '@tiltyard/core/rendering'

import type { Layout } from '../layouts/layout.ts'
import { deltaWriter } from './deltas.ts'
import { replyReader, type ThinkStart } from './reading.ts'
import { parsedReply } from './reply.ts'

export interface ParserOptions {
  readonly layout: Layout
  readonly start: ThinkStart
  readonly tokenizer: Tokenizer
  readonly stop: Marker
  readonly eos: Marker
}

/** Ids → deltas as they come, and the whole at the end. */
export function replyStream(
  { layout, start, tokenizer, stop, eos }: ParserOptions,
  { tools, callId = (index) => `call_${index}` }: Omit<ReplyContext, 'stop'>,
): ReplyStream {
  const reader = replyReader({
    calls: layout.calls,
    start,
    reasons: layout.think !== 'none',
    tools,
    callId,
  })
  const deltas = deltaWriter(layout)
  const text = tokenizer.stream()
  const afterStop = tokenizer.stream()
  let stopText = ''
  let ended: Termination | undefined

  const push = (ids: Int32Array) => {
    if (ended !== undefined) {
      stopText += afterStop.push(ids)
      return []
    }
    const reply = splitReply(ids, { stop, eos })
    reader.push(text.push(reply.ids))
    if (reply.termination !== 'length') {
      ended = reply.termination
      stopText += afterStop.push(reply.rest)
    }
    return deltas(reader.reading, reader.fresh(), false)
  }

  return {
    push,
    end(reason: StopReason) {
      reader.push(text.end())
      const termination = ended ?? reason
      reader.finish(termination)
      stopText += afterStop.end()
      return {
        deltas: deltas(reader.reading, reader.fresh(), true),
        reply: parsedReply(reader.reading, layout, termination, stopText),
      }
    },
  }
}

/** The whole of a reply at once: a stream with one piece. */
export function parseReply(
  options: ParserOptions,
  ids: Int32Array,
  context: ReplyContext,
): ParsedReply {
  const stream = replyStream(options, context)
  stream.push(ids)
  return stream.end(context.stop).reply
}
