import {
  NotFoundError,
  StateError,
  UnsupportedError,
  lossNames,
  silentLogger,
  unknownName,
  type Backend,
  type Capabilities,
  type CheckpointInfo,
  type CheckpointRef,
  type LearnerOptions,
  type Logger,
  type ModelInfo,
  type Sampler,
} from '@tiltyard/core'

import { tinkerClient, type TinkerClient } from './client.ts'
import { TinkerError } from './errors.ts'
import { HOSTED_URL, type TinkerOptions } from './options.ts'
import type { WireCapabilities, WireCheckpoint } from './rest.ts'
import { STEPS_KEY, tinkerLearner } from './tinker-learner.ts'
import { tinkerSampler } from './tinker-sampler.ts'

/** What Tiltyard's own server adds to the answer about capabilities. Other services and clients pass over it. */
interface TiltyardCapabilities {
  readonly losses?: Capabilities['losses']
  readonly images?: boolean
  readonly top_logprobs?: boolean
  readonly deterministic?: boolean
  readonly adaptations?: Capabilities['adaptations']
  readonly executor?: string
  readonly models?: readonly { readonly vocabulary_size?: number; readonly parameters?: number }[]
}

/** The ending of a base model's name by which a whole model is trained, its rank ignored. Services with LoRA only lack such names. */
const FULL = ':full'

/** Pages of this many checkpoints are asked for. */
const PAGE = 100

/** Context window of a model whose service doesn't tell. */
const UNKNOWN_WINDOW = 32_768

/**
 * A Tinker service as a backend: the hosted one, Tiltyard's own (`tiltyard serve tinker`), or another that speaks the protocol.
 * @throws ConfigError for options that can't be right. Nothing is sent before the first call.
 */
export function tinkerBackend(options: TinkerOptions): Backend {
  const told = options.logger === undefined ? createRelay() : undefined
  const client = tinkerClient(told === undefined ? options : { ...options, logger: told.logger })
  const host = new URL(options.baseUrl ?? HOSTED_URL).host
  const samplers = new Set<Sampler>()
  let described: Promise<Capabilities> | undefined
  let closed = false

  const checkOpen = () => {
    if (closed) throw new StateError('the backend is closed')
  }

  const describe = () => {
    described ??= client.rest
      .capabilities()
      .then((answer) => capabilitiesOf(answer, host))
      .catch((error: unknown) => {
        described = undefined
        throw error
      })
    return described
  }

  const modelNamed = async (name: string): Promise<ModelInfo> => {
    const { models } = await describe()
    const found = models.find((model) => model.name === name)
    if (found !== undefined) return found
    const known = models.map((model) => model.name)
    throw new NotFoundError(`${unknownName('model', name, known)} (models of ${host})`, {
      details: { models: known },
    })
  }

  const windowOf = async (baseModel: string): Promise<number> => {
    const { models } = await describe()
    const plain = baseModel.endsWith(FULL) ? baseModel.slice(0, -FULL.length) : baseModel
    return models.find(({ name }) => name === plain)?.contextWindow ?? UNKNOWN_WINDOW
  }

  const openSampler = async (
    at: { readonly session: string } | { readonly path: string },
    step: number,
    contextWindow: number,
  ) => {
    const session =
      'session' in at
        ? await client.openedSession(at.session)
        : await client.samplingSession({ modelPath: at.path })
    const sampler = tinkerSampler({
      session,
      contextWindow,
      ...('path' in at
        ? {
            version: { id: at.path, step },
            checkpoint: { path: at.path, kind: 'sampling' as const },
          }
        : { version: { id: at.session, step } }),
    })
    samplers.add(sampler)
    return sampler
  }

  const listed = async (path: string): Promise<WireCheckpoint | undefined> => {
    const run = /^tinker:\/\/([^/]+)\//.exec(path)?.[1]
    if (run === undefined) return undefined
    try {
      const all = await client.rest.checkpoints({ run })
      return all.find((checkpoint) => checkpoint.tinker_path === path)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  const stepsOf = async (path: string): Promise<number> => {
    const steps = Number((await listed(path))?.user_metadata?.[STEPS_KEY])
    return Number.isInteger(steps) ? steps : 0
  }

  return {
    specVersion: 'backend/1',
    name: 'tinker',
    async describe() {
      checkOpen()
      return describe()
    },
    async learner(wanted) {
      checkOpen()
      const info = await modelNamed(wanted.model)
      checkAdaptation(wanted, await describe())
      const { from, optimizer = true } = wanted
      const model =
        from === undefined
          ? await client.createModel(modelSettings(wanted))
          : await client.loadModel(from.path, { optimizer })
      return tinkerLearner({
        name: wanted.model,
        model,
        steps: from === undefined ? 0 : await stepsOf(from.path),
        openSampler: (at, step) => openSampler(at, step, info.contextWindow),
      })
    },
    async sampler(ref) {
      checkOpen()
      if ('checkpoint' in ref) {
        const { path } = ref.checkpoint
        const step = await stepsOf(path)
        const opened = await client.samplingSession({ modelPath: path })
        const { base_model: baseModel } = await client.rest.sampler(opened.id)
        const sampler = tinkerSampler({
          session: opened,
          version: { id: path, step },
          checkpoint: { path, kind: 'sampling' },
          contextWindow: await windowOf(baseModel),
        })
        samplers.add(sampler)
        return sampler
      }
      const { contextWindow } = await modelNamed(ref.model)
      const session = await client.samplingSession({ baseModel: ref.model })
      const sampler = tinkerSampler({ session, version: { id: ref.model, step: 0 }, contextWindow })
      samplers.add(sampler)
      return sampler
    },
    checkpoints: () => ({
      async list() {
        checkOpen()
        const all: CheckpointInfo[] = []
        for (let offset = 0; ; offset += PAGE) {
          const page = await client.rest.checkpoints({ limit: PAGE, offset })
          all.push(...page.flatMap(infoOf))
          if (page.length < PAGE) return all
        }
      },
      async exists({ path }) {
        checkOpen()
        return (await listed(path)) !== undefined
      },
      async delete({ path }) {
        checkOpen()
        await client.rest.deleteCheckpoint(path).catch((error: unknown) => {
          if (!isMissing(error)) throw error
        })
      },
    }),
    logTo(logger) {
      told?.to(logger)
    },
    async close() {
      closed = true
      for (const sampler of samplers) await sampler.close()
      await client.close()
    },
  }
}

/** A logger that hands on to another, which comes later; silent until then. */
function createRelay(): { readonly logger: Logger; to(logger: Logger): void } {
  let target = silentLogger
  return {
    logger: {
      debug: (...said) => target.debug(...said),
      info: (...said) => target.info(...said),
      warn: (...said) => target.warn(...said),
      error: (...said) => target.error(...said),
    },
    to(logger) {
      target = logger
    },
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof NotFoundError || (error instanceof TinkerError && error.status === 404)
}

function modelSettings({
  model,
  adaptation,
}: LearnerOptions): Parameters<TinkerClient['createModel']>[0] {
  if (adaptation === 'full') return { baseModel: model + FULL, rank: 1 }
  const { rank, seed } = adaptation
  return { baseModel: model, rank, ...(seed !== undefined && { seed }) }
}

function checkAdaptation(
  { adaptation, from }: LearnerOptions,
  { adaptations }: Capabilities,
): void {
  if (from?.kind === 'sampling')
    throw new UnsupportedError(
      `${from.path} has weights for sampling only; learning goes on from a saved checkpoint`,
    )
  if (adaptation === 'full') {
    if (adaptations.includes('full')) return
    throw new UnsupportedError(
      'this service trains LoRA adapters only; give adaptation: { rank: 32 }',
    )
  }
  if (adaptation.alpha !== undefined)
    throw new UnsupportedError(
      'the scale of adapters (alpha) is the service’s choice; leave it out',
    )
}

/** What is known of a service: its models; for the rest, what the hosted service documents, unless ours says otherwise. */
function capabilitiesOf(
  answer: WireCapabilities & { readonly tiltyard?: TiltyardCapabilities },
  host: string,
): Capabilities {
  const ours = answer.tiltyard
  return {
    models: answer.supported_models.flatMap((model, index): readonly ModelInfo[] => {
      if (model.model_name == null) return []
      const more = ours?.models?.[index]
      return [
        {
          name: model.model_name,
          contextWindow: model.max_context_length ?? UNKNOWN_WINDOW,
          ...(more?.vocabulary_size !== undefined && { vocabularySize: more.vocabulary_size }),
          ...(more?.parameters !== undefined && { parameters: more.parameters }),
        },
      ]
    }),
    losses: ours?.losses ?? lossNames,
    mask: false,
    images: ours?.images ?? true,
    topLogprobs: ours?.top_logprobs ?? true,
    deterministic: ours?.deterministic ?? false,
    adaptations: ours?.adaptations ?? ['lora'],
    executor: `tinker service at ${host}${ours?.executor === undefined ? '' : ` (${ours.executor})`}`,
  }
}

function infoOf(checkpoint: WireCheckpoint): readonly CheckpointInfo[] {
  const { tinker_path: path, checkpoint_type: type, time, size_bytes: bytes } = checkpoint
  const kinds: Readonly<Record<string, CheckpointRef['kind']>> = {
    training: 'training',
    sampler: 'sampling',
  }
  const kind = kinds[type]
  if (kind === undefined) return []
  const createdAt = Date.parse(time)
  return [
    {
      path,
      kind,
      name: path.slice(path.lastIndexOf('/') + 1),
      ...(!Number.isNaN(createdAt) && { createdAt }),
      ...(bytes != null && { bytes }),
    },
  ]
}
