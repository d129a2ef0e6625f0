import {
  type AssistantMessage,
  type EndReason,
  type Env,
  isRunnable,
  NotFoundError,
  type RewardRule,
  type TaskSource,
  type ToolSpec,
} from '@tiltyard/core'

/** Number of operands by task; `two-turns` asks for a second sum. */
const tasks = { 'one-turn': 1, 'two-turns': 2, third: 1 } as const

const number = { type: 'integer' } as const
const add: ToolSpec = {
  name: 'add',
  description: 'Add two numbers.',
  parameters: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
}
const fail: ToolSpec = {
  name: 'fail',
  description: 'Always fails.',
  parameters: { type: 'object', properties: { why: { type: 'string' } }, required: ['why'] },
}

export interface SumsSource extends TaskSource {
  /** What became of the envs, in order of their ends. */
  readonly ends: EndReason[]
  readonly opened: number
}

/**
 * Tasks that ask for sums. The score `right` is the share of turns whose reply holds the sum; `calls` counts the calls. A call of
 * `add` for 13 breaks the environment; `hold` keeps a call until it is aborted.
 */
export function sumsSource(): SumsSource {
  const ends: EndReason[] = []
  let opened = 0
  return {
    specVersion: 'task-source/1',
    name: 'sums',
    fingerprint: 'sums-1',
    steps: ['right', 'calls'],
    ends,
    get opened() {
      return opened
    },
    async *tasks(split) {
      await Promise.resolve()
      const ids = Object.keys(tasks)
      for (const id of split === 'train' ? ids.slice(0, 2) : ids) yield { id, fingerprint: id }
    },
    prepare: () => Promise.resolve(),
    open({ id }, { seed }) {
      if (!(id in tasks)) return Promise.reject(new NotFoundError(`there is no task "${id}"`))
      opened += 1
      return Promise.resolve(sumsEnv(tasks[id as keyof typeof tasks], seed, ends))
    },
    close: () => Promise.resolve(),
  }
}

export const rightRule: RewardRule = {
  specVersion: 'reward-rule/1',
  name: 'right',
  check() {},
  reward({ scores }) {
    const score = scores['right']
    return score !== undefined && 'value' in score
      ? { reward: score.value }
      : { unscored: 'nobody answered' }
  },
}

function sumsEnv(turns: number, seed: number, ends: EndReason[]): Env {
  let turn = 0
  let right = 0
  let calls = 0
  let ended: EndReason | undefined
  const operands = () => [(seed % 50) + turn, 2] as const
  const ask = () => ({ role: 'user' as const, content: `What is ${operands().join(' + ')}?` })
  return {
    specVersion: 'env/1',
    start: () =>
      Promise.resolve({
        messages: [{ role: 'system', content: 'You add numbers.' }, ask()],
        tools: [add, fail],
      }),
    async step(reply: AssistantMessage, { signal }) {
      const [call] = reply.toolCalls ?? []
      if (call === undefined) {
        const [a, b] = operands()
        if (reply.content.includes(String(a + b))) right += 1
        turn += 1
        if (turn >= turns) return { done: true }
        return {
          done: false,
          messages: [ask()],
          turn: { system: { role: 'system', content: 'You add once more.' } },
        }
      }
      calls += 1
      const { error, result } = await answer(
        call.name,
        isRunnable(call) ? call.arguments : {},
        signal,
      )
      const text = error === undefined ? result : `error: ${error}`
      return {
        done: false,
        messages: [{ role: 'tool', content: text, toolCallId: call.id, name: call.name }],
        calls: [
          {
            id: call.id,
            name: call.name,
            arguments: isRunnable(call) ? call.arguments : call.rawArguments,
            result: text,
            ...(error === undefined ? {} : { error }),
            ms: 0,
          },
        ],
      }
    },
    end(reason) {
      if (ended === undefined) ends.push(reason)
      ended ??= reason
      return Promise.resolve()
    },
    score: () =>
      Promise.resolve({
        end: ended!,
        scores: {
          right:
            turn === 0 && ended?.kind === 'cut'
              ? { unscored: 'no reply' }
              : { value: right / turns },
          calls: { value: calls },
        },
        metrics: { tool_calls: calls },
      }),
    close: () => Promise.resolve(),
  }
}

interface Answer {
  readonly result: string
  readonly error?: string
}

async function answer(
  name: string,
  args: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Answer> {
  const { a, b, why } = args
  if (name === 'fail') return { result: '', error: `bad: ${String(why)}` }
  if (name !== 'add') return { result: '', error: `unknown tool "${name}"` }
  if (typeof a !== 'number' || typeof b !== 'number' || Object.keys(args).length > 2)
    return { result: '', error: 'add takes two numbers' }
  if (a === 13) throw new Error('thirteen')
  if (a === -1)
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
    )
  return { result: String(a + b) }
}
