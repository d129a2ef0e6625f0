import { NotFoundError } from '@tiltyard/core'

import type { ArchiveFile } from './archive.ts'
import { parseJson, type Caller } from './caller.ts'
import { TinkerError } from './errors.ts'

/** A checkpoint as the service lists it. Times are ISO 8601. */
export interface WireCheckpoint {
  readonly checkpoint_id: string
  readonly checkpoint_type: string
  readonly time: string
  readonly tinker_path: string
  readonly size_bytes?: number | null
  readonly public?: boolean
  readonly expires_at?: string | null
  readonly user_metadata?: Readonly<Record<string, string>> | null
}

export interface WireTrainingRun {
  readonly training_run_id: string
  readonly base_model: string
  readonly model_owner: string
  readonly is_lora: boolean
  readonly lora_rank?: number | null
  readonly last_request_time: string
  readonly corrupted?: boolean
  readonly last_checkpoint?: WireCheckpoint | null
  readonly last_sampler_checkpoint?: WireCheckpoint | null
  readonly user_metadata?: Readonly<Record<string, string>> | null
}

export interface WireWeightsInfo {
  readonly base_model: string
  readonly is_lora: boolean
  readonly lora_rank?: number | null
  readonly train_unembed?: boolean | null
  readonly train_mlp?: boolean | null
  readonly train_attn?: boolean | null
}

export interface WireModelInfo {
  readonly model_id: string
  readonly model_name?: string | null
  readonly is_lora?: boolean | null
  readonly lora_rank?: number | null
  readonly model_data: {
    readonly arch?: string | null
    readonly model_name?: string | null
    readonly tokenizer_id?: string | null
  }
}

export interface WireSampler {
  readonly sampler_id: string
  readonly base_model: string
  readonly model_path?: string | null
}

export interface WireSupportedModel {
  readonly model_name?: string | null
  readonly max_context_length?: number | null
  readonly trainable?: boolean | null
  readonly sampleable?: boolean | null
}

export interface WireCapabilities {
  readonly supported_models: readonly WireSupportedModel[]
}

/** Where the archive of a checkpoint can be fetched, without a key, until `expires`. */
export interface ArchiveLocation {
  readonly url: string
  /** Milliseconds since 1970. */
  readonly expires: number
}

export interface Page {
  /** Default: the service's, 20 or 100. */
  readonly limit?: number
  readonly offset?: number
}

/** Looking at what is on the service, and tidying up. A path is `tinker://<run>/<weights|sampler_weights>/<name>`. */
export interface TinkerRest {
  capabilities(): Promise<WireCapabilities>
  trainingRuns(page?: Page): Promise<readonly WireTrainingRun[]>
  trainingRun(id: string): Promise<WireTrainingRun>
  /** Of one run, or one page over all runs. */
  checkpoints(of: { readonly run: string } | Page): Promise<readonly WireCheckpoint[]>
  /** What a checkpoint was trained from. @throws NotFoundError */
  weightsInfo(path: string): Promise<WireWeightsInfo>
  modelInfo(modelId: string): Promise<WireModelInfo>
  sampler(samplingSessionId: string): Promise<WireSampler>
  sessions(page?: Page): Promise<readonly string[]>
  /** @throws NotFoundError */
  deleteCheckpoint(path: string): Promise<void>
  /** `undefined`: keep for ever. */
  setTtl(path: string, seconds: number | undefined): Promise<void>
  publishCheckpoint(path: string): Promise<void>
  unpublishCheckpoint(path: string): Promise<void>
  /** Waits, for some minutes at most, until the service has built it. Newer services may have none. */
  archive(path: string): Promise<ArchiveLocation>
  /**
   * The files of a checkpoint, through its archive, as they arrive. Services pack adapters in PEFT's layout.
   * @throws TinkerError when the archive can't be had or isn't whole; what was read until then is of no use.
   */
  files(path: string): AsyncIterable<ArchiveFile>
}

const ARCHIVE_TRIES = 6
const ARCHIVE_PAUSE_MS = 30_000
const ARCHIVE_LIFE_MS = 15 * 60_000

export function createRest(
  caller: Caller,
  sleep: (milliseconds: number) => Promise<void>,
  download: (place: {
    readonly url: string
    readonly operation: string
  }) => AsyncIterable<ArchiveFile>,
): TinkerRest {
  const get = <T>(operation: string, path: string) =>
    caller.json<T>({ operation, path, method: 'GET' })

  const archive = (path: string) =>
    withCheckpoint(path, async (at) => {
      for (let tries = 1; ; tries += 1) {
        const response = await caller.send({
          operation: 'ask for the archive of a checkpoint',
          method: 'GET',
          path: `${at}/archive`,
          handles: [302, 503],
        })
        const location = response.header('location')
        if (response.status === 302 && location !== undefined)
          return { url: location, expires: expiry(response.header('expires')) }
        if (response.status === 200) {
          const { url, expires } = parseJson('ask for the archive of a checkpoint', response) as {
            readonly url: string
            readonly expires?: string
          }
          return { url, expires: expiry(expires) }
        }
        if (tries === ARCHIVE_TRIES) {
          throw new TinkerError(
            'TINKER_UNREACHABLE',
            `the archive of ${path} is still being built; ask again later`,
            { operation: 'ask for the archive of a checkpoint', status: response.status },
          )
        }
        await sleep(ARCHIVE_PAUSE_MS)
      }
    })

  return {
    capabilities: () => get('ask what the service has', '/get_server_capabilities'),
    async trainingRuns(page) {
      const answer = await get<{ training_runs: readonly WireTrainingRun[] }>(
        'list runs',
        `/training_runs${query(page)}`,
      )
      return answer.training_runs
    },
    trainingRun: (id) => get('look at a run', `/training_runs/${id}`),
    async checkpoints(of) {
      const path = 'run' in of ? `/training_runs/${of.run}/checkpoints` : `/checkpoints${query(of)}`
      return (await get<{ checkpoints: readonly WireCheckpoint[] }>('list checkpoints', path))
        .checkpoints
    },
    async weightsInfo(path) {
      try {
        return await caller.json({
          operation: 'look at a checkpoint',
          path: '/weights_info',
          json: { tinker_path: path },
        })
      } catch (error) {
        throw notFound(
          error,
          `no checkpoint ${path} on this service, for this key; it may have been deleted, or its time may have run out`,
        )
      }
    },
    modelInfo: (modelId) =>
      caller.json({
        operation: 'look at a model',
        path: '/get_info',
        json: { model_id: modelId, type: 'get_info' },
      }),
    sampler: (id) => get('look at a sampler', `/samplers/${id}`),
    async sessions(page) {
      return (
        await get<{ sessions: readonly string[] }>('list sessions', `/sessions${query(page)}`)
      ).sessions
    },
    deleteCheckpoint: (path) =>
      withCheckpoint(path, async (at) => {
        await caller.send({ operation: 'delete a checkpoint', method: 'DELETE', path: at })
      }),
    setTtl: (path, seconds) =>
      withCheckpoint(path, async (at) => {
        await caller.send({
          operation: 'set how long a checkpoint is kept',
          method: 'PUT',
          path: `${at}/ttl`,
          // The one place where the service wants a null.
          body: JSON.stringify({ ttl_seconds: seconds ?? null }),
        })
      }),
    publishCheckpoint: (path) =>
      withCheckpoint(path, async (at) => {
        await caller.send({ operation: 'make a checkpoint public', path: `${at}/publish` })
      }),
    unpublishCheckpoint: (path) =>
      withCheckpoint(path, async (at) => {
        await caller.send({
          operation: 'make a checkpoint private',
          method: 'DELETE',
          path: `${at}/publish`,
        })
      }),
    archive,
    async *files(path) {
      const { url } = await archive(path)
      yield* download({ url, operation: `download the archive of ${path}` })
    },
  }
}

/** Parts of a path. Ids are put into addresses as they are: that is how the service has them. */
function splitPath(path: string): { readonly run: string; readonly checkpoint: string } {
  const [run, kind, name, ...more] = path.replace(/^tinker:\/\//, '').split('/')
  const known = kind === 'weights' || kind === 'sampler_weights' || kind === 'external_weights'
  const plain = [run, name].every((part) => part !== undefined && /^[\w:.-]+$/.test(part))
  if (!path.startsWith('tinker://') || !known || more.length > 0 || !plain)
    throw new NotFoundError(
      `"${path}" is no path of a checkpoint; those look like tinker://<run>/weights/<name>`,
    )
  return { run: run!, checkpoint: `${kind}/${name}` }
}

function notFound(error: unknown, message: string): unknown {
  if (!(error instanceof TinkerError) || error.status !== 404) return error
  return new NotFoundError(message, { cause: error })
}

function query(page: Page | undefined): string {
  const parameters = new URLSearchParams()
  if (page?.limit !== undefined) parameters.set('limit', String(page.limit))
  if (page?.offset !== undefined) parameters.set('offset', String(page.offset))
  return parameters.size === 0 ? '' : `?${parameters.toString()}`
}

function expiry(text: string | undefined): number {
  const at = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(at) ? Date.now() + ARCHIVE_LIFE_MS : at
}

/** Runs with the address of a checkpoint; a 404 means that there is none. */
async function withCheckpoint<T>(path: string, work: (at: string) => Promise<T>): Promise<T> {
  const { run, checkpoint } = splitPath(path)
  try {
    return await work(`/training_runs/${run}/checkpoints/${checkpoint}`)
  } catch (error) {
    throw notFound(error, `no checkpoint ${path} on this service, for this key`)
  }
}
