export * from './config/control.ts'
export * from './config/options.ts'
export * from './config/training.ts'
export { assembleEpisode, type PolicyDatum } from './data/assemble.ts'
export {
  judgeGroup,
  untrainedReasons,
  type JudgedGroup,
  type JudgeOptions,
  type Untrained,
  type Verdict,
} from './data/prepare.ts'
export {
  interleave,
  type InterleavedSource,
  type InterleaveOptions,
} from './datasets/interleave.ts'
export { listDataset, type ListDatasetOptions, type PlannedTask } from './datasets/list.ts'
export { shiftTokens, type ShiftedTokens } from './data/shift.ts'
export { evenRanks, metricLabel } from './metrics/numbers.ts'
export { groupAdvantages, isConstant } from './objective/advantages.ts'
export { forwardBackwardCustom, type CustomLoss } from './objective/custom-loss.ts'
export * from './objective/kl.ts'
export { clipDefaults, lossTerms, type LossTerms } from './objective/losses.ts'
export * from './objective/preference.ts'
export { recommendedLearningRate, type ModelSize } from './optimize/recommend.ts'
export { scheduleMultiplier } from './optimize/schedule.ts'
export { packByTokens, splitEvenly } from './optimize/split.ts'
export * from './report.ts'
export { weightedDatum } from './supervised/examples.ts'
export { describeTraining } from './run/describe.ts'
export type { EvaluateOptions } from './run/evaluation-run.ts'
export * from './train.ts'
