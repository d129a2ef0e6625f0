import { createReadStream } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import {
  checkOptions,
  ConfigError,
  type CheckpointInfo,
  type CheckpointRef,
  type CheckpointStore,
  NotFoundError,
  StoreError,
} from '@tiltyard/core'
import { z } from 'zod'

import type { TrainerState } from '../learn/trainer.ts'
import type { LoraShape } from '../model/adapters.ts'
import { parametersOf, type Tensors } from '../model/parameters.ts'
import type { ModelShape } from '../model/shape.ts'
import {
  adapterConfigJson,
  adapterInfos,
  checkpointBytes,
  configJson,
  loadedTensors,
  momentInfos,
  storedTensors,
  withoutPeftNames,
  withPeftNames,
} from './layout.ts'
import { folderName, nameOfFolder } from './names.ts'
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts'

const FORMAT = 1
const files = {
  config: 'config.json',
  model: 'model.safetensors',
  adapterConfig: 'adapter_config.json',
  adapters: 'adapter_model.safetensors',
  optimizer: 'optimizer.safetensors',
  state: 'state.json',
} as const

const stateSchema = z.object({
  formatVersion: z.literal(FORMAT),
  model: z.string(),
  step: z.int().nonnegative(),
  lora: z.object({ rank: z.int(), alpha: z.number() }).optional(),
})

/** What a checkpoint belongs to. */
export interface CheckpointOwner {
  readonly model: string
  readonly shape: ModelShape
  readonly lora: LoraShape | undefined
}

/** Weights alone, as a sampler needs them. */
export interface SavedWeights {
  readonly step: number
  readonly weights: Tensors
}

/** Checkpoints in a folder, each in a folder of its own in Hugging Face's layout; one is there only when it is whole. */
export interface FolderCheckpoints extends CheckpointStore {
  /** Equal content again changes nothing; other content takes the place of what was under the name. */
  saveTraining(name: string, owner: CheckpointOwner, state: TrainerState): Promise<CheckpointRef>
  saveSampling(
    name: string,
    owner: Omit<CheckpointOwner, 'lora'>,
    saved: SavedWeights,
  ): Promise<CheckpointRef>
  /**
   * With `optimizer: false` the moments are left out and the step is 0.
   * @throws NotFoundError; ConfigError for one of another model, shape or adaptation.
   */
  loadTraining(
    ref: CheckpointRef,
    owner: CheckpointOwner,
    optimizer: boolean,
  ): Promise<TrainerState>
  /** The model that a checkpoint belongs to. @throws NotFoundError */
  modelOf(ref: CheckpointRef): Promise<string>
  /** Of either kind; adapters must have been merged, so a training checkpoint with adapters is refused. */
  loadSampling(ref: CheckpointRef, owner: Omit<CheckpointOwner, 'lora'>): Promise<SavedWeights>
}

/** `write` is for tests of a disk that fails. */
export function folderCheckpoints(
  folder: string,
  write: (path: string, content: Uint8Array) => Promise<void> = writeDurably,
): FolderCheckpoints {
  const placeOf = ({ kind, path }: CheckpointRef) => join(folder, kind, folderName(path))

  const save = async (
    ref: CheckpointRef,
    parts: ReadonlyMap<string, Uint8Array>,
    bytes: number,
  ): Promise<CheckpointRef> => {
    const target = placeOf(ref)
    try {
      if (await holds(target, parts)) return ref
      await mkdirAll(join(folder, ref.kind))
      const made = await mkdtemp(join(folder, '.writing-'))
      try {
        for (const [name, content] of parts) await write(join(made, name), content)
        await replace(made, target)
      } finally {
        await rm(made, { recursive: true, force: true })
      }
      return ref
    } catch (error) {
      throw storeError(
        `could not save checkpoint "${ref.path}" (${bytes} bytes) in ${folder}`,
        error,
      )
    }
  }

  const read = async (ref: CheckpointRef, file: string): Promise<Uint8Array> => {
    try {
      return await readFile(join(placeOf(ref), file))
    } catch (error) {
      if (!isCode(error, 'ENOENT'))
        throw storeError(`could not read ${file} of checkpoint "${ref.path}"`, error)
      const there = (await list()).filter(({ kind }) => kind === ref.kind).map(({ name }) => name)
      const hint = there.length === 0 ? 'there is none' : `there is ${there.join(', ')}`
      throw new NotFoundError(
        `there is no ${ref.kind} checkpoint "${ref.path}" with ${file} in ${folder}; ${hint}`,
      )
    }
  }

  const readState = async (ref: CheckpointRef) => {
    const text = new TextDecoder().decode(await read(ref, files.state))
    const state = checkOptions(
      `${files.state} of checkpoint "${ref.path}"`,
      stateSchema,
      parsed(text),
    )
    return state
  }

  const tensorsOf = async (ref: CheckpointRef, file: string) =>
    decodeSafetensors(`${ref.path}/${file}`, await read(ref, file))

  const weightsOf = async (ref: CheckpointRef, shape: ModelShape) =>
    loadedTensors(
      `${ref.path}/${files.model}`,
      parametersOf(shape),
      await tensorsOf(ref, files.model),
    )

  const list = async (): Promise<readonly CheckpointInfo[]> => {
    const found: CheckpointInfo[] = []
    for (const kind of ['training', 'sampling'] as const) {
      for (const entry of await readdir(join(folder, kind)).catch(() => [])) {
        const name = nameOfFolder(entry)
        if (name === undefined) continue
        const size = await sizeOf(join(folder, kind, entry)).catch(missing)
        // Deleted, or about to be replaced, while it was looked at.
        if (size === undefined) continue
        found.push({ kind, path: name, name, createdAt: size.mtimeMs, bytes: size.bytes })
      }
    }
    return found.toSorted(
      (a, b) => (a.createdAt ?? 0) - (b.createdAt ?? 0) || (a.name < b.name ? -1 : 1),
    )
  }

  return {
    list,
    async exists(ref) {
      return (await stat(join(placeOf(ref), files.state)).catch(() => undefined)) !== undefined
    },
    async delete(ref) {
      await rm(placeOf(ref), { recursive: true, force: true })
    },
    async files(ref) {
      // Told by the state whether there is one, and of this kind.
      await readState(ref)
      const place = placeOf(ref)
      const names = (await readdir(place)).toSorted()
      return Promise.all(
        names.map(async (name) => ({
          name,
          bytes: (await stat(join(place, name))).size,
          read: () => createReadStream(join(place, name)),
        })),
      )
    },
    async saveTraining(name, { model, shape, lora }, { step, weights, adapters, moments }) {
      const flat = new Map(
        [...moments].flatMap(
          ([of, { first, second }]) =>
            [
              [`${of}.first`, first],
              [`${of}.second`, second],
            ] as const,
        ),
      )
      const parts = new Map<string, Uint8Array>([
        [files.config, jsonBytes(configJson(shape))],
        [files.model, encodeSafetensors(storedTensors(parametersOf(shape), weights))],
        [files.optimizer, encodeSafetensors(storedTensors(momentInfos(shape, lora), flat))],
        [
          files.state,
          jsonBytes({
            formatVersion: FORMAT,
            model,
            step,
            ...(lora === undefined ? {} : { lora }),
          }),
        ],
      ])
      if (lora !== undefined && adapters !== undefined) {
        parts.set(files.adapterConfig, jsonBytes(adapterConfigJson(lora)))
        parts.set(
          files.adapters,
          encodeSafetensors(storedTensors(adapterInfos(shape, lora), withPeftNames(adapters))),
        )
      }
      return save({ kind: 'training', path: name }, parts, checkpointBytes(shape, lora))
    },
    async saveSampling(name, { model, shape }, { step, weights }) {
      const tensors = encodeSafetensors(storedTensors(parametersOf(shape), weights))
      const parts = new Map([
        [files.config, jsonBytes(configJson(shape))],
        [files.model, tensors],
        [files.state, jsonBytes({ formatVersion: FORMAT, model, step })],
      ])
      return save({ kind: 'sampling', path: name }, parts, tensors.length)
    },
    async modelOf(ref) {
      return (await readState(ref)).model
    },
    async loadTraining(ref, { model, shape, lora }, optimizer) {
      const state = await readState(ref)
      checkOwner(ref, state, model, lora)
      const weights = await weightsOf(ref, shape)
      const adapters =
        lora === undefined
          ? undefined
          : withoutPeftNames(
              loadedTensors(
                `${ref.path}/${files.adapters}`,
                adapterInfos(shape, lora),
                await tensorsOf(ref, files.adapters),
              ),
            )
      const given = { weights, ...(adapters === undefined ? {} : { adapters }) }
      if (!optimizer) return { ...given, step: 0, moments: new Map() }
      const flat = loadedTensors(
        `${ref.path}/${files.optimizer}`,
        momentInfos(shape, lora),
        await tensorsOf(ref, files.optimizer),
      )
      const names = new Set([...flat.keys()].map((name) => name.replace(/\.(?:first|second)$/, '')))
      const moments = new Map(
        [...names].map((name) => [
          name,
          { first: flat.get(`${name}.first`)!, second: flat.get(`${name}.second`)! },
        ]),
      )
      return { ...given, step: state.step, moments }
    },
    async loadSampling(ref, { model, shape }) {
      const state = await readState(ref)
      checkOwner(ref, state, model, undefined)
      return { step: state.step, weights: await weightsOf(ref, shape) }
    },
  }
}

function checkOwner(
  ref: CheckpointRef,
  state: z.output<typeof stateSchema>,
  model: string,
  lora: LoraShape | undefined,
): void {
  const mistakes = [
    ...(state.model === model
      ? []
      : [{ at: ref.path, message: `it is of model "${state.model}", not "${model}"` }]),
    ...(told(state.lora) === told(lora)
      ? []
      : [{ at: ref.path, message: `it holds ${told(state.lora)}; asked for ${told(lora)}` }]),
  ]
  if (mistakes.length > 0) throw new ConfigError('checkpoint of another learner', mistakes)
}

function told(of: LoraShape | undefined): string {
  return of === undefined ? 'full weights' : `LoRA of rank ${of.rank}, alpha ${of.alpha}`
}

async function writeDurably(path: string, content: Uint8Array): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Puts a whole folder in its place. What was there before goes only when the new one stands beside it. */
async function replace(made: string, target: string): Promise<void> {
  const old = `${made}-old`
  const moved = await rename(target, old).then(
    () => true,
    (error: unknown) => {
      if (isCode(error, 'ENOENT')) return false
      throw error
    },
  )
  try {
    await rename(made, target)
  } catch (error) {
    if (moved) await rename(old, target)
    throw error
  }
  await rm(old, { recursive: true, force: true })
}

async function holds(target: string, parts: ReadonlyMap<string, Uint8Array>): Promise<boolean> {
  for (const [name, content] of parts) {
    const there = await readFile(join(target, name)).catch(() => undefined)
    if (there === undefined || Buffer.compare(there, content) !== 0) return false
  }
  return true
}

async function sizeOf(
  folder: string,
): Promise<{ readonly mtimeMs: number; readonly bytes: number }> {
  let bytes = 0
  for (const name of await readdir(folder)) bytes += (await stat(join(folder, name))).size
  return { mtimeMs: (await stat(folder)).mtimeMs, bytes }
}

function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value, undefined, 2)}\n`)
}

/** Of a folder in a read-only one a recursive mkdir says that it is absent; a plain one says why. */
async function mkdirAll(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true })
  } catch (error) {
    const parent = dirname(path)
    if (!isCode(error, 'ENOENT') || parent === path) throw error
    await mkdirAll(parent)
    await mkdir(path)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function missing(error: unknown): undefined {
  if (isCode(error, 'ENOENT')) return undefined
  throw error
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

const hints: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; make room, then go on with --resume',
  EROFS: 'the folder is read-only; choose another',
  EACCES: 'this user may not write there; choose another folder or change its rights',
}

function storeError(what: string, error: unknown): StoreError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const hint = hints[code] ?? (error instanceof Error ? error.message : String(error))
  return new StoreError(`${what}: ${hint}. What was saved before is untouched.`, { cause: error })
}
