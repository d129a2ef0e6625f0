import type { JsonObject } from '@tiltyard/core'
import { z } from 'zod'

/** The bundle format that this package reads. */
export const FORMAT_VERSION = 1

/** What the name of a manifest's file is. */
export const MANIFEST_FILE = 'bundle.json'

const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json())
const path = z.string().min(1)
const milliseconds = z.int().min(1)

export const rewardSpecSchema = z.union(
  [
    /** The name of a step, or `weighted`: the steps' own weights. */
    z.string().min(1),
    z.strictObject({ weighted: z.record(z.string(), z.number().nonnegative()) }),
    z.strictObject({ product: z.array(z.string()).min(1) }),
    z.strictObject({ threshold: z.strictObject({ step: z.string(), least: z.number() }) }),
  ],
  {
    error:
      'expected the name of a step, "weighted", { "weighted": { step: weight } }, { "product": [steps] } or { "threshold": { "step", "least" } }',
  },
)

const evalSchema = z.union(
  [
    /** Ids of tasks, one a line. */
    z.strictObject({ file: path }),
    z.strictObject({ ids: z.array(z.string()).min(1) }),
    /** Tasks that have all of the tags, and in `meta` all of the values. */
    z.strictObject({
      where: z.strictObject({ tags: z.array(z.string()).optional(), meta: jsonObject.optional() }),
    }),
  ],
  { error: 'expected { "file": path }, { "ids": [ids] } or { "where": { "tags", "meta" } }' },
)

const stepSchema = z.strictObject({
  /** The score's name: `score/<name>` in metrics. */
  name: z.string().regex(/^[\w.-]+$/, 'a name of letters, digits, "_", "-" and "."'),
  /** A verifier of the module, or a built-in one. */
  use: z.string(),
  /** For `reward: "weighted"`. Default 1. */
  weight: z.number().nonnegative().optional(),
  /** Settings of the verifier. */
  options: jsonObject.optional(),
})

const limitsSchema = z.strictObject({
  /** Wall time of one tool call. Default 30,000 ms; the player's own limit holds too. */
  toolMs: milliseconds.optional(),
  /** Wall time of one verifier. Default 60,000 ms. */
  verifierMs: milliseconds.optional(),
  /** Most characters of a tool's result that the model is shown. Default 20,000. */
  toolOutputChars: z.int().min(1).optional(),
  /** Which part of a longer result is kept. Default `both`: a half of each end. */
  toolOutputKeep: z.enum(['head', 'tail', 'both']).optional(),
})

const sandboxSchema = z.strictObject({
  /** A folder of the bundle that is copied into each sandbox. */
  files: path.optional(),
  commandMs: milliseconds.optional(),
  outputBytes: z.int().min(1).optional(),
  memoryBytes: z.int().min(1).optional(),
  processes: z.int().min(1).optional(),
  diskBytes: z.int().min(1).optional(),
})

/** `bundle.json`. All paths are relative to its folder and stay inside it. */
export const manifestSchema = z.strictObject({
  formatVersion: z.literal(FORMAT_VERSION),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]*$/, 'a name of lower-case letters, digits, "-", "_" and "."'),
  version: z.string().optional(),
  description: z.string().optional(),
  license: z.string().optional(),
  /** Exports `bundle`: tools, verifiers, users. */
  module: path.optional(),
  /** Files with one task a line, in this order. */
  tasks: z.array(path).min(1).optional(),
  universe: z.strictObject({ kind: z.literal('json'), base: path }).optional(),
  /** A text file: the system prompt of tasks that bring none. The newline at its end doesn't count. */
  system: path.optional(),
  /** Names of tools, in the order in which the model is shown them. Default: all of the module, `bash` first when there is a sandbox. */
  tools: z.array(z.string()).optional(),
  /** Whether calls of one reply may run side by side, where all their tools allow it. Default false. */
  parallelCalls: z.boolean().optional(),
  sandbox: sandboxSchema.optional(),
  steps: z.array(stepSchema).min(1),
  reward: rewardSpecSchema.optional(),
  evals: z.record(z.string().min(1), evalSchema).optional(),
  limits: limitsSchema.optional(),
  /** What time it is for the tools. Default: 2026-01-01T00:00:00Z. */
  clock: z.iso.datetime().optional(),
  /** Settings of the module and their defaults. `loadBundle` may be given other values. */
  settings: jsonObject.optional(),
  /** The module reads a folder of data that isn't part of the bundle; the text says where to get it. */
  data: z.string().min(1).optional(),
  /** Environment variable that names that folder, where `loadBundle` isn't given it. */
  dataVariable: z.string().min(1).optional(),
  /** Names of secrets that tools need. Their values never lie in the bundle. */
  secrets: z.array(z.string().min(1)).optional(),
})

export type Manifest = z.output<typeof manifestSchema>
export type RewardSpec = z.output<typeof rewardSpecSchema>
