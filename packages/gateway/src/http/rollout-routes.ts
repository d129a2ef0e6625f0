import type { OpenAttempt } from '../attempt.ts'
import { readBody } from '../dialects/fields.ts'
import { invalidRequest } from '../errors.ts'
import type { RewardTarget } from '../rewards.ts'

/** How an agent in another process says that it is done. */
export interface AgentEnd {
  readonly status: 'completed' | 'failed'
  /** Of a failed agent, for the record. */
  readonly error?: string
  /** What it leaves for verifiers, as text. */
  readonly output?: string
}

/** A reward by an agent, or by whoever watches it, with its key. */
export async function takeReward(
  attempt: OpenAttempt,
  request: Request,
  maxBytes: number,
): Promise<Response> {
  const { body } = await readBody(request, maxBytes)
  if (!Object.hasOwn(body.value, 'value')) throw invalidRequest('value is missing', 'value')
  const name = body.string('name')
  const target = body.string('target')
  const reason = body.string('reason')
  const isFinal = body.boolean('final') ?? false
  const value = body.number('value', Number.NEGATIVE_INFINITY) ?? null
  const reward = attempt.reward({
    value,
    ...(name === undefined ? {} : { name }),
    ...(target === undefined ? {} : { target: target as RewardTarget }),
    ...(reason === undefined ? {} : { reason }),
    final: isFinal,
  })
  return Response.json({ ...reward, final: isFinal })
}

/** The agent is done. Saying so again is harmless. */
export async function takeEnd(
  attempt: OpenAttempt,
  request: Request,
  maxBytes: number,
): Promise<Response> {
  const { body } = await readBody(request, maxBytes)
  const status = body.string('status') ?? 'completed'
  if (status !== 'completed' && status !== 'failed')
    throw invalidRequest('status must be completed or failed', 'status')
  const error = body.string('error')
  const output = body.string('output')
  attempt.finish({
    status,
    ...(error === undefined ? {} : { error }),
    ...(output === undefined ? {} : { output }),
  })
  return Response.json({ status })
}
