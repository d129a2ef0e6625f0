import { setImmediate as turn } from 'node:timers/promises'

import {
  missingData,
  NotFoundError,
  StateError,
  TiltyardError,
  type TokenLogprob,
} from '@tiltyard/core'

import { folderCheckpoints } from '../checkpoint/store.ts'
import { createTrainer, TrainingFault, type Trainer, type TrainerState } from '../learn/trainer.ts'
import { initialAdapters, type LoraShape } from '../model/adapters.ts'
import { initialTensors, type Tensors } from '../model/parameters.ts'
import type { ResolvedModel } from '../options.ts'
import type { Executor, Program } from '../runtime/executor.ts'
import { loadExecutor } from '../runtime/onnxruntime.ts'
import { extendGraph } from '../sample/graph.ts'
import { createPolicy, type Call, type Policy, type SamplePrograms } from '../sample/policy.ts'
import type { FromWorker, RequestName, Requests, ToWorker, WorkerSetup } from './protocol.ts'

type Handlers = {
  readonly [Name in RequestName]: (
    input: Requests[Name]['in'],
    call: EngineCall,
  ) => Promise<Requests[Name]['out']>
}

interface EngineCall {
  readonly id: number
  /** Aborts when its caller has left. */
  readonly left: AbortSignal
}

interface OpenLearner {
  readonly model: string
  readonly lora: LoraShape | undefined
  readonly trainer: Trainer
  /** Forward-backwards that failed. */
  failures: number
}

interface OpenPolicy {
  readonly create: () => Policy
  policy: Policy
  /** Rejects the calls under way, when the policy fails. */
  readonly calls: Set<(error: unknown) => void>
  closing: boolean
}

/** All that samples and learns, behind messages. One engine has one thread. */
export function createEngine(setup: WorkerSetup, post: (message: FromWorker) => void) {
  let executor: Promise<Executor> | undefined
  const loaded = () =>
    (executor ??= loadExecutor({ choice: setup.executor, threads: setup.threads }))
  const checkpoints = folderCheckpoints(setup.folder)
  const learners = new Map<number, OpenLearner>()
  const policies = new Map<number, OpenPolicy>()
  const programs = samplePrograms(loaded, setup)
  const callers = new Map<number, AbortController>()
  const bytesOf = spelling(setup)

  /** Learner requests, one after another, in the order in which they came. */
  let line: Promise<unknown> = Promise.resolve()
  const inLine = async <T>(work: () => Promise<T>): Promise<T> => {
    const done = line.then(work)
    line = done.catch(() => {})
    return await done
  }
  const modelOf = (name: string): ResolvedModel => {
    const model = setup.models[name]
    if (model === undefined) throw new NotFoundError(`there is no model "${name}"`)
    return model
  }
  const learnerOf = (id: number): OpenLearner => {
    const learner = learners.get(id)
    if (learner === undefined) throw new StateError('the learner is closed')
    return learner
  }
  const openPolicy = (id: number, model: string, weights: Tensors) => {
    const { shape } = modelOf(model)
    const { cacheBytes, maxRows } = setup
    const create = () =>
      createPolicy({ shape, weights, programs: programs(model), cacheBytes, maxRows, bytesOf })
    policies.set(id, { create, policy: create(), calls: new Set(), closing: false })
  }
  /** Runs a call of a policy, which may be closed meanwhile: it finishes all the same, unless its caller leaves. */
  const withPolicy = async <T>(
    id: number,
    { left }: EngineCall,
    work: (policy: Policy, call: Call) => Promise<T>,
  ): Promise<T> => {
    const open = policies.get(id)
    if (open === undefined || open.closing) throw new StateError('the sampler is closed')
    let fail: ((error: unknown) => void) | undefined
    const failed = new Promise<never>((_, reject) => {
      fail = reject
    })
    open.calls.add(fail!)
    left.addEventListener('abort', () => fail!(left.reason))
    void pump()
    try {
      return await Promise.race([work(open.policy, { cancelled: () => left.aborted }), failed])
    } finally {
      open.calls.delete(fail!)
      dropClosed(id)
    }
  }
  const dropClosed = (id: number) => {
    const open = policies.get(id)
    if (open?.closing === true && open.calls.size === 0) policies.delete(id)
  }

  let pumping = false
  /** Moves all replies on, a token at a time, as long as there are any. Learner requests and messages get their turns between. */
  const pump = async () => {
    if (pumping) return
    pumping = true
    for (;;) {
      await turn()
      const busy = [...policies.values()].filter(({ policy }) => policy.busy)
      if (busy.length === 0) break
      for (const open of busy) {
        try {
          await open.policy.advance()
        } catch (error) {
          // What it was at would fail again, and for ever.
          open.policy = open.create()
          for (const fail of open.calls) fail(error)
        }
      }
    }
    pumping = false
  }

  const handlers: Handlers = {
    async describe() {
      const { name, version, threads } = await loaded()
      return { name, version, threads }
    },
    openLearner: ({ learner, model, lora, loraSeed, from, optimizer }) =>
      inLine(async () => {
        const { shape, initial } = modelOf(model)
        const owner = { model, shape, lora }
        const state =
          from === undefined
            ? firstState({ shape, initial }, lora, loraSeed)
            : await checkpoints.loadTraining(from, owner, optimizer)
        const { microBatchTokens } = setup
        const trainer = createTrainer({
          executor: await loaded(),
          shape,
          lora,
          microBatchTokens,
          state,
        })
        learners.set(learner, { model, lora, trainer, failures: 0 })
        return { steps: state.step }
      }),
    forward: ({ learner, data, loss, backward }) =>
      inLine(async () => {
        const open = learnerOf(learner)
        if (!backward) return await open.trainer.forward(data, loss)
        try {
          return await open.trainer.forwardBackward(data, loss)
        } catch (error) {
          open.failures += 1
          throw error
        }
      }),
    step: ({ learner, adam, knownFailures }) =>
      inLine(async () => {
        const { trainer, failures } = learnerOf(learner)
        if (failures > knownFailures) throw missingData()
        return trainer.step(adam)
      }),
    save: ({ learner, name }) =>
      inLine(async () => {
        const { model, lora, trainer } = learnerOf(learner)
        return await checkpoints.saveTraining(
          name,
          { model, shape: modelOf(model).shape, lora },
          trainer.state(),
        )
      }),
    publish: ({ learner, sampler, name }) =>
      inLine(async () => {
        const { model, trainer } = learnerOf(learner)
        const weights = trainer.weights()
        const { step } = trainer.state()
        openPolicy(sampler, model, weights)
        if (name === undefined) return { steps: step }
        const { shape } = modelOf(model)
        return {
          steps: step,
          checkpoint: await checkpoints.saveSampling(name, { model, shape }, { step, weights }),
        }
      }),
    closeLearner: ({ learner }) =>
      inLine(async () => {
        await learners.get(learner)?.trainer.release()
        learners.delete(learner)
        return undefined
      }),
    openSampler: ({ sampler, model, from }) =>
      inLine(async () => {
        const { shape, initial } = modelOf(model)
        const saved =
          from === undefined
            ? { step: 0, weights: initialTensors(shape, initial) }
            : await checkpoints.loadSampling(from, { model, shape })
        openPolicy(sampler, model, saved.weights)
        return { steps: saved.step }
      }),
    async closeSampler({ sampler }) {
      const open = policies.get(sampler)
      if (open !== undefined) open.closing = true
      dropClosed(sampler)
      return undefined
    },
    sample: ({ sampler, streaming, stopTokens, stopStrings, ...task }, call) =>
      withPolicy(sampler, call, (policy, caller) =>
        policy.sample(
          { ...task, stop: { tokens: stopTokens, strings: stopStrings } },
          {
            ...caller,
            ...(streaming
              ? {
                  onToken: (index, token, logprob) =>
                    post({ type: 'token', id: call.id, index, token, logprob }),
                }
              : {}),
          },
        ),
      ),
    logprobs: ({ sampler, prompt, shared }, call) =>
      withPolicy(sampler, call, async (policy, caller) => {
        const result = new Float32Array(prompt.length)
        result[0] = Number.NaN
        await policy.score(prompt, shared, caller, (position, logprobs) => {
          if (position + 1 < prompt.length) result[position + 1] = logprobs[prompt[position + 1]!]!
        })
        return result
      }),
    topLogprobs: ({ sampler, prompt, shared, k }, call) =>
      withPolicy(sampler, call, async (policy, caller) => {
        const result: (readonly TokenLogprob[])[] = Array.from(prompt, () => [])
        await policy.score(prompt, shared, caller, (position, logprobs) => {
          if (position + 1 < prompt.length) result[position + 1] = likeliest(logprobs, k)
        })
        return result
      }),
  }

  const answer = async <Name extends RequestName>(
    id: number,
    name: Name,
    input: Requests[Name]['in'],
  ) => {
    const caller = new AbortController()
    callers.set(id, caller)
    try {
      post({ type: 'result', id, output: await handlers[name](input, { id, left: caller.signal }) })
    } catch (error) {
      post({ type: 'error', id, ...told(error) })
    } finally {
      callers.delete(id)
    }
  }

  return {
    receive(message: ToWorker): void {
      if (message.type === 'cancel')
        callers.get(message.id)?.abort(new StateError('its caller left'))
      else void answer(message.id, message.name, message.input as never)
    },
  }
}

function firstState(
  { shape, initial }: ResolvedModel,
  lora: LoraShape | undefined,
  loraSeed: number,
): TrainerState {
  return {
    step: 0,
    weights: initialTensors(shape, initial),
    ...(lora === undefined ? {} : { adapters: initialAdapters(shape, lora, loraSeed) }),
    moments: new Map(),
  }
}

/** The sampler's graphs of a model, loaded when first used and shared by its policies. One thread: replies are small products. */
function samplePrograms(
  loaded: () => Promise<Executor>,
  { models }: WorkerSetup,
): (model: string) => SamplePrograms {
  const cache = new Map<string, Promise<Program>>()
  const program = (model: string, withPrefix: boolean) => {
    const key = `${withPrefix} ${model}`
    const loading =
      cache.get(key) ??
      loaded().then((executor) =>
        executor.load(extendGraph(models[model]!.shape, withPrefix), { threads: 1 }),
      )
    cache.set(key, loading)
    return loading
  }
  return (model) => ({ plain: () => program(model, false), prefixed: () => program(model, true) })
}

function spelling({ spellings }: WorkerSetup): (id: number) => Uint8Array {
  if (spellings === undefined) return () => new Uint8Array()
  const { bytes, starts } = spellings
  return (id) => bytes.subarray(starts[id], starts[id + 1])
}

function likeliest(logprobs: Float32Array, k: number): readonly TokenLogprob[] {
  const order = Array.from(logprobs, (_, id) => id).sort(
    (a, b) => logprobs[b]! - logprobs[a]! || a - b,
  )
  return order.slice(0, k).map((id) => ({ id, logprob: logprobs[id]! }))
}

function told(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof TrainingFault)
    return { code: 'DATA', message: `${error.message}; nothing was changed` }
  if (TiltyardError.is(error)) return { code: error.code, message: error.message }
  return {
    code: 'BACKEND',
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  }
}
