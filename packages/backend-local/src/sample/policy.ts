import { rotaryTables } from '../model/decoder.ts'
import { layerName, parametersOf, type Tensors } from '../model/parameters.ts'
import type { ModelShape } from '../model/shape.ts'
import { uniform } from '../random.ts'
import { type Feeds, floats, type Program } from '../runtime/executor.ts'
import type { SequenceCache } from './batch.ts'
import { chooseToken, type Drawing } from './choose.ts'
import { BLOCK } from './graph.ts'
import { createLane, type Lane, type Prediction } from './lane.ts'
import { type StopRule, stopWatch } from './stops.ts'
import { type CacheStore, cacheStore } from './store.ts'

export interface SampleTask extends Drawing {
  readonly prompt: Int32Array
  /** How many leading tokens many prompts share; whole blocks of them are read once for all that share them. */
  readonly shared: number
  readonly maxTokens: number
  readonly stop: StopRule
  /** One per sample. */
  readonly seeds: readonly number[]
}

export interface Call {
  readonly cancelled: () => boolean
  readonly onToken?: (sample: number, id: number, logprob: number) => void
}

export interface Reply {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
  readonly stop: 'stop' | 'length'
}

export interface PolicyOptions {
  readonly shape: ModelShape
  readonly weights: Tensors
  readonly programs: SamplePrograms
  /** Bytes of keys and values that are kept for prompts to go on from. */
  readonly cacheBytes: number
  readonly maxRows: number
  readonly bytesOf: (id: number) => Uint8Array
}

export interface SamplePrograms {
  plain(): Promise<Program>
  prefixed(): Promise<Program>
}

/** One immutable policy version, ready to be sampled. Calls may overlap; `advance` moves all of them on. */
export interface Policy {
  sample(task: SampleTask, call: Call): Promise<readonly Reply[]>
  /** Visits the log-probabilities [V] after each position of the prompt, in order of positions, those of the last too. */
  score(
    prompt: Int32Array,
    shared: number,
    call: Call,
    visit: (position: number, logprobs: Float32Array) => void,
  ): Promise<void>
  advance(): Promise<void>
  readonly busy: boolean
}

export function createPolicy(options: PolicyOptions): Policy {
  const { shape, weights, programs, cacheBytes, maxRows, bytesOf } = options
  const fixed = fixedFeeds(shape, weights)
  const lane = (store: CacheStore, program: () => Promise<Program>, before?: SequenceCache) =>
    createLane({ shape, fixed, maxRows, store, program, prefix: before })

  const plainStore = cacheStore(cacheBytes)
  const plain = place(
    plainStore,
    lane(plainStore, () => programs.plain()),
    0,
  )
  const prefixes = new Map<string, Prefix>()

  /** Which part of a prompt is shared is said by the prompt alone: where it is cut changes last bits. */
  const openPrefix = (tokens: Int32Array): Prefix => {
    const logprobs: Float32Array[] = []
    const opened: Prefix = { waiting: 0, place: undefined, ready: Promise.resolve() }
    opened.ready = new Promise((resolve) => {
      plain.lane.read({
        tokens,
        temperature: 1,
        everyPosition: true,
        cancelled: () => false,
        predicted: (position, prediction) => {
          logprobs[position] = prediction.logprobs.slice()
        },
        done: (cache) => {
          const store = cacheStore(cacheBytes)
          const prefixed = lane(store, () => programs.prefixed(), cache)
          opened.place = place(store, prefixed, tokens.length, logprobs)
          resolve()
        },
      })
    })
    return opened
  }
  /** The longest idle go first. Opened again they give the same bits. */
  const dropPrefixes = () => {
    for (const [key, { waiting, place: opened }] of prefixes) {
      if (prefixes.size <= MOST_PREFIXES) return
      if (waiting === 0 && opened?.lane.busy === false) prefixes.delete(key)
    }
  }
  /** Runs `start`, which gives the lane its work before it returns, once the lane is there. */
  const inPlace = async <T>(
    prompt: Int32Array,
    shared: number,
    start: (at: Place) => Promise<T>,
  ): Promise<T> => {
    const length = Math.min(shared, prompt.length - 1)
    const tokens = prompt.slice(0, length - (length % BLOCK))
    if (tokens.length === 0) return await start(plain)
    const key = tokens.join()
    const prefix = prefixes.get(key) ?? openPrefix(tokens)
    prefixes.delete(key)
    prefixes.set(key, prefix)
    prefix.waiting += 1
    dropPrefixes()
    await prefix.ready
    const started = start(prefix.place!)
    prefix.waiting -= 1
    return await started
  }
  const lanes = () => [
    plain.lane,
    ...[...prefixes.values()].flatMap(({ place: opened }) =>
      opened === undefined ? [] : [opened.lane],
    ),
  ]

  return {
    sample: (task, call) =>
      inPlace(task.prompt, task.shared, (at) =>
        Promise.all(
          task.seeds.map(
            (seed, index) =>
              new Promise<Reply>((resolve) => {
                startReply(at, task, { seed, index, bytesOf, call, resolve })
              }),
          ),
        ),
      ),
    score: (prompt, shared, { cancelled }, visit) =>
      inPlace(prompt, shared, ({ lane: reader, offset, logprobs: before }) => {
        before.forEach((logprobs, position) => visit(position, logprobs))
        return new Promise<void>((resolve) => {
          reader.read({
            tokens: prompt.subarray(offset),
            temperature: 1,
            everyPosition: true,
            cancelled,
            predicted: (position, { logprobs }) => visit(offset + position, logprobs),
            done: () => resolve(),
          })
        })
      }),
    async advance() {
      for (const each of lanes()) if (each.busy) await each.advance()
    },
    get busy() {
      return lanes().some((each) => each.busy)
    },
  }
}

/** Shared prefixes that are kept ready. */
const MOST_PREFIXES = 8

function place(
  store: CacheStore,
  lane: Lane,
  offset: number,
  logprobs: readonly Float32Array[] = [],
): Place {
  return { lane, store, offset, logprobs, reading: new Map() }
}

/** A shared prefix; `place` is there once it was read. */
interface Prefix {
  /** Calls that wait for it. */
  waiting: number
  place: Place | undefined
  ready: Promise<void>
}

/** A lane with what it remembers. */
interface Place {
  readonly lane: Lane
  readonly store: CacheStore
  /** Positions before the lane's own, */
  readonly offset: number
  /** and what is predicted after each of them. */
  readonly logprobs: readonly Float32Array[]
  /** Prompts under way, so that equal ones are read once. */
  readonly reading: Map<string, WaitingReply[]>
}

interface WaitingReply {
  readonly cancelled: () => boolean
  readonly begin: (cache: SequenceCache, prediction: Prediction) => void
}

interface ReplyContext {
  readonly seed: number
  readonly index: number
  readonly bytesOf: (id: number) => Uint8Array
  readonly call: Call
  readonly resolve: (reply: Reply) => void
}

function startReply(
  { lane, store, offset, reading }: Place,
  task: SampleTask,
  context: ReplyContext,
): void {
  const { seed, index, call, resolve } = context
  const { cancelled } = call
  const tokens = task.prompt.subarray(offset)
  const watch = stopWatch(task.stop, context.bytesOf)
  const ids = new Int32Array(task.maxTokens)
  const logprobs = new Float32Array(task.maxTokens)
  let count = 0
  let stop: Reply['stop'] = 'length'

  /** Draws the next token; false when it was the last. */
  const draw = (prediction: Prediction): boolean => {
    const id = chooseToken(prediction.shares, task, uniform(seed, 0, count))
    const logprob = prediction.logprobs[id]!
    ids[count] = id
    logprobs[count] = logprob
    count += 1
    call.onToken?.(index, id, logprob)
    if (!watch.ends(id)) return count < task.maxTokens
    stop = 'stop'
    return false
  }
  const finish = () =>
    resolve({ ids: ids.slice(0, count), logprobs: logprobs.slice(0, count), stop })
  const begin: WaitingReply['begin'] = (cache, prediction) => {
    if (cancelled()) return
    if (!draw(prediction)) {
      finish()
      return
    }
    lane.write(
      {
        temperature: task.temperature,
        cancelled,
        next: () => ids[count - 1]!,
        predicted: draw,
        done: (whole) => {
          store.put(joined(tokens, ids.subarray(0, count - 1)), whole)
          finish()
        },
      },
      cache,
    )
  }

  const key = `${task.temperature} ${tokens.join()}`
  const others = reading.get(key)
  if (others !== undefined) {
    others.push({ cancelled, begin })
    return
  }
  const waiting: WaitingReply[] = [{ cancelled, begin }]
  reading.set(key, waiting)
  let prediction: Prediction
  lane.read({
    tokens,
    temperature: task.temperature,
    everyPosition: false,
    cancelled: () => {
      const all = waiting.every((reply) => reply.cancelled())
      if (all) reading.delete(key)
      return all
    },
    predicted: (_, last) => {
      prediction = last
    },
    done: (cache) => {
      reading.delete(key)
      for (const reply of waiting) reply.begin(cache, prediction)
    },
  })
}

/** Parameters as the graph takes them, norms multiplied into the projections behind them, and rotary tables. */
function fixedFeeds(shape: ModelShape, weights: Tensors): Feeds {
  const scales = new Map<string, string>()
  for (let layer = 0; layer < shape.layers; layer += 1) {
    const at = (name: string) => layerName(layer, name)
    for (const name of ['q_proj', 'k_proj', 'v_proj'])
      scales.set(at(`self_attn.${name}`), at('input_layernorm'))
    for (const name of ['gate_proj', 'up_proj'])
      scales.set(at(`mlp.${name}`), at('post_attention_layernorm'))
  }
  const unused = new Set(scales.values())
  const { cos, sin } = rotaryTables(shape)
  const tables = [shape.contextWindow, shape.headSize / 2]
  const parameters = parametersOf(shape).flatMap(({ name, shape: sizes }) => {
    if (unused.has(name)) return []
    const norm = scales.get(name)
    const tensor = weights.get(name)!
    return [
      [
        name,
        floats(norm === undefined ? tensor : rowsScaled(tensor, weights.get(norm)!), sizes),
      ] as const,
    ]
  })
  return { ...Object.fromEntries(parameters), cos: floats(cos, tables), sin: floats(sin, tables) }
}

function rowsScaled(matrix: Float32Array, scale: Float32Array): Float32Array {
  const columns = matrix.length / scale.length
  return matrix.map((value, at) => value * scale[Math.floor(at / columns)]!)
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  const whole = new Int32Array(first.length + second.length)
  whole.set(first)
  whole.set(second, first.length)
  return whole
}
