export * from './backend.ts'
export * from './contract.ts'
export * from './data.ts'
export * from './dataset.ts'
export * from './end.ts'
export * from './env.ts'
export * from './episode.ts'
export * from './errors.ts'
export * from './images.ts'
export * from './json.ts'
export * from './learner.ts'
export * from './logger.ts'
export * from './messages.ts'
export * from './options.ts'
export * from './records/events.ts'
export * from './records/keys.ts'
export * from './records/typed-arrays.ts'
export {
  endReasonSchema,
  rewardSchema,
  scoreSchema,
  type Recorded,
  type RecordedMessage,
} from './records/values.ts'
export * from './renderer.ts'
export * from './run-index.ts'
export * from './sampler.ts'
export * from './sandbox.ts'
export * from './score.ts'
export * from './seed.ts'
export * from './step-guard.ts'
export * from './tokenizer.ts'
export * from './tokens.ts'
export * from './waiting.ts'
