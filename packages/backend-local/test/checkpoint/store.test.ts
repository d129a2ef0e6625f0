import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { folderName, nameOfFolder } from '../../src/checkpoint/names.ts'
import { decodeSafetensors, encodeSafetensors } from '../../src/checkpoint/safetensors.ts'
import { folderCheckpoints } from '../../src/checkpoint/store.ts'
import { zeroMoments } from '../../src/learn/adam.ts'
import type { TrainerState } from '../../src/learn/trainer.ts'
import { initialAdapters, trainableOf } from '../../src/model/adapters.ts'
import { elementsOf, initialTensors } from '../../src/model/parameters.ts'
import { modelShapeSchema } from '../../src/model/shape.ts'

const shape = modelShapeSchema.parse({
  vocabularySize: 16,
  width: 8,
  heads: 2,
  kvHeads: 1,
  headSize: 4,
  hidden: 12,
})
const owner = { model: 'tiny', shape, lora: undefined }
const lora = { rank: 2, alpha: 4 }

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-checkpoints-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function stateOf(seed: number, adapted = false): TrainerState {
  const adapters = adapted ? { adapters: initialAdapters(shape, lora, seed) } : {}
  const moments = new Map(
    trainableOf(shape, adapted ? lora : undefined).map(({ name, shape: sizes }) => {
      const moment = zeroMoments(elementsOf(sizes))
      moment.first.forEach((_, at) => (moment.first[at] = Math.fround(seed + at / 7)))
      moment.second.fill(seed / 3)
      return [name, moment]
    }),
  )
  return {
    step: seed,
    weights: initialTensors(shape, { seed, deviation: 0.02, queryKeyNorm: 1 }),
    ...adapters,
    moments,
  }
}

test('weights, optimizer and step come back bit for bit, with adapters and without', async () => {
  const checkpoints = folderCheckpoints(folder)
  const full = await checkpoints.saveTraining('a', owner, stateOf(3))
  const adapted = await checkpoints.saveTraining('b', { ...owner, lora }, stateOf(4, true))
  expect(await checkpoints.loadTraining(full, owner, true)).toEqual(stateOf(3))
  expect(await checkpoints.loadTraining(adapted, { ...owner, lora }, true)).toEqual(
    stateOf(4, true),
  )
})

test('without the optimizer the moments and the step are left out', async () => {
  const checkpoints = folderCheckpoints(folder)
  const ref = await checkpoints.saveTraining('a', owner, stateOf(3))
  const { weights } = stateOf(3)
  expect(await checkpoints.loadTraining(ref, owner, false)).toEqual({
    step: 0,
    weights,
    moments: new Map(),
  })
})

test('files are in the layout that transformers and PEFT read', async () => {
  const checkpoints = folderCheckpoints(folder)
  await checkpoints.saveTraining('b', { ...owner, lora }, stateOf(4, true))
  const place = join(folder, 'training', 'b')
  expect(readdirSync(place).toSorted()).toEqual([
    'adapter_config.json',
    'adapter_model.safetensors',
    'config.json',
    'model.safetensors',
    'optimizer.safetensors',
    'state.json',
  ])
  const model = decodeSafetensors('model', readFileSync(join(place, 'model.safetensors')))
  expect(model.get('model.layers.0.mlp.gate_proj.weight')!.shape).toEqual([12, 8])
  expect(model.get('model.embed_tokens.weight')!.shape).toEqual([16, 8])
  const adapters = decodeSafetensors(
    'adapters',
    readFileSync(join(place, 'adapter_model.safetensors')),
  )
  expect(
    adapters.get('base_model.model.model.layers.1.mlp.down_proj.lora_A.weight')!.shape,
  ).toEqual([2, 12])
  expect(JSON.parse(readFileSync(join(place, 'config.json'), 'utf8'))).toMatchObject({
    model_type: 'qwen3',
    head_dim: 4,
  })
})

test('its files can be taken elsewhere; one that isn’t there has none', async () => {
  const checkpoints = folderCheckpoints(folder)
  const ref = await checkpoints.saveTraining('b', { ...owner, lora }, stateOf(4, true))
  const files = await checkpoints.files!(ref)
  expect(files.map(({ name }) => name)).toEqual([
    'adapter_config.json',
    'adapter_model.safetensors',
    'config.json',
    'model.safetensors',
    'optimizer.safetensors',
    'state.json',
  ])
  for (const { name, bytes, read } of files) {
    const pieces: Uint8Array[] = []
    for await (const piece of read()) pieces.push(piece)
    expect(Buffer.concat(pieces)).toEqual(readFileSync(join(folder, 'training', 'b', name)))
    expect(Buffer.concat(pieces)).toHaveLength(bytes)
  }
  const other = { ...ref, kind: 'sampling' } as const
  await expect(checkpoints.files!(other)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('what is deleted while a list is made is left out of it', async () => {
  const checkpoints = folderCheckpoints(folder)
  await checkpoints.saveTraining('a', owner, stateOf(3))
  // Named in its folder, and not to be found: as one is that goes between the two looks.
  symlinkSync('nowhere', join(folder, 'training', 'gone'))
  expect((await checkpoints.list()).map(({ name }) => name)).toEqual(['a'])
})

test('the same name and content again changes nothing; other content takes its place', async () => {
  const checkpoints = folderCheckpoints(folder)
  const ref = await checkpoints.saveTraining('a', owner, stateOf(3))
  const [before] = await checkpoints.list()
  await checkpoints.saveTraining('a', owner, stateOf(3))
  expect(await checkpoints.list()).toEqual([before])
  await checkpoints.saveTraining('a', owner, stateOf(5))
  expect((await checkpoints.loadTraining(ref, owner, true)).step).toBe(5)
  expect(readdirSync(folder)).toEqual(['training'])
})

test('a full disk is told, leaves nothing behind, and what was saved before is untouched', async () => {
  const ref = await folderCheckpoints(folder).saveTraining('a', owner, stateOf(3))
  let writes = 0
  const full = folderCheckpoints(folder, async () => {
    writes += 1
    if (writes === 2) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  })
  await expect(full.saveTraining('a', owner, stateOf(4))).rejects.toThrow(
    'the disk is full; make room',
  )
  expect(readdirSync(folder)).toEqual(['training'])
  expect((await full.loadTraining(ref, owner, true)).step).toBe(3)
})

test('a read-only folder is told', async () => {
  const readOnly = folderCheckpoints(folder, async () => {
    throw Object.assign(new Error('read-only'), { code: 'EROFS' })
  })
  await expect(readOnly.saveSampling('a', owner, stateOf(1))).rejects.toThrow(
    'the folder is read-only',
  )
})

test('a checkpoint of another shape is refused with both shapes', async () => {
  const checkpoints = folderCheckpoints(folder)
  const ref = await checkpoints.saveTraining('a', owner, stateOf(3))
  const wider = { ...owner, shape: { ...shape, width: 16 } }
  await expect(checkpoints.loadTraining(ref, wider, true)).rejects.toThrow(
    "tensor model.embed_tokens.weight is [16, 8], the model's is [16, 16]",
  )
})

test('a checkpoint of another model or adaptation is refused by name', async () => {
  const checkpoints = folderCheckpoints(folder)
  const ref = await checkpoints.saveTraining('a', owner, stateOf(3))
  await expect(checkpoints.loadTraining(ref, { ...owner, model: 'big' }, true)).rejects.toThrow(
    'of model "tiny", not "big"',
  )
  await expect(checkpoints.loadTraining(ref, { ...owner, lora }, true)).rejects.toThrow(
    'it holds full weights; asked for LoRA of rank 2, alpha 4',
  )
})

test('one that is not there is not found, and the message says what is', async () => {
  const checkpoints = folderCheckpoints(folder)
  await checkpoints.saveTraining('first', owner, stateOf(3))
  const missing = { kind: 'training', path: 'second' } as const
  await expect(checkpoints.loadTraining(missing, owner, true)).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
  await expect(checkpoints.loadTraining(missing, owner, true)).rejects.toThrow('there is first')
  expect(await checkpoints.exists(missing)).toBe(false)
  await checkpoints.delete(missing)
})

test('a cut file is refused by name, wherever it is cut', async () => {
  const checkpoints = folderCheckpoints(folder)
  const ref = await checkpoints.saveSampling('a', owner, stateOf(3))
  const file = join(folder, 'sampling', 'a', 'model.safetensors')
  const whole = readFileSync(file).length
  for (const length of [whole - 1, Math.floor(whole / 2), 100, 7, 0]) {
    truncateSync(file, length)
    await expect(checkpoints.loadSampling(ref, owner)).rejects.toThrow('a/model.safetensors')
  }
})

test('F63: names of any kind come back, and stay apart where case does not count', async () => {
  const names = ['tinker://a:b', 'con', 'CON', 'x.', 'Ünï/ä', 'A', 'a', '../..', '%41']
  const folders = names.map(folderName)
  expect(folders.map(nameOfFolder)).toEqual(names)
  expect(new Set(folders.map((name) => name.toLowerCase())).size).toBe(names.length)
  for (const name of folders) expect(name).toMatch(/^[a-z0-9_%-]+$/)
  const checkpoints = folderCheckpoints(folder)
  for (const name of names) await checkpoints.saveSampling(name, owner, stateOf(1))
  expect((await checkpoints.list()).map(({ name }) => name).toSorted()).toEqual(names.toSorted())
})

test('a safetensors header that promises too much is refused, not allocated', () => {
  const bytes = encodeSafetensors(new Map([['a', { shape: [2], data: Float32Array.of(1, 2) }]]))
  new DataView(bytes.buffer).setBigUint64(0, 2n ** 60n, true)
  expect(() => decodeSafetensors('x', bytes)).toThrow('its header is longer than the file')
})
