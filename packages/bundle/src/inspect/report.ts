import type { AuthorFailure } from './failure.ts'

/** What `checkBundle` can find. */
export type FindingKind =
  /** Doing nothing earns the full reward. */
  | 'no-op'
  /** A gold call gives an error. */
  | 'gold-call-fails'
  /** Playing the gold earns less than the full reward. */
  | 'gold-earns-less'
  /** Two replays of the gold differ: a tool asks the machine's clock or chance. */
  | 'gold-differs'
  /** The gold's writes leave another universe in another order. */
  | 'gold-order-matters'
  /** A tool or verifier broke. */
  | 'breaks'
  /** Two evals that should share no task do. */
  | 'evals-overlap'
  | 'tool-without-description'
  | 'parameter-without-type'
  | 'prompt-too-long'

export interface Finding {
  readonly kind: FindingKind
  /** `tasks.jsonl:12`, or the name of the tool or eval. */
  readonly at: string
  readonly task?: string
  readonly message: string
  readonly failure?: AuthorFailure
}

export interface BundleReport {
  readonly bundle: string
  readonly fingerprint: string
  readonly tasks: number
  /** Tasks without gold: of them only doing nothing was played. */
  readonly withoutGold: number
  readonly evals: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
  /** Tokens of the first prompts, when they could be counted. */
  readonly promptTokens?: { readonly least: number; readonly mean: number; readonly most: number }
}
