export type { ArchiveFile } from './archive.ts'
export { tinkerClient, type CreateModelSettings, type TinkerClient } from './client.ts'
export {
  TinkerError,
  type TinkerCategory,
  type TinkerErrorCode,
  type TinkerErrorFacts,
} from './errors.ts'
export {
  HOSTED_URL,
  PROTOCOL_VERSION,
  type TinkerDeadlines,
  type TinkerKey,
  type TinkerLimits,
  type TinkerOptions,
} from './options.ts'
export type {
  ArchiveLocation,
  Page,
  TinkerRest,
  WireCapabilities,
  WireCheckpoint,
  WireModelInfo,
  WireSampler,
  WireSupportedModel,
  WireTrainingRun,
  WireWeightsInfo,
} from './rest.ts'
export type { SampleSettings, SamplingSession } from './sampling-session.ts'
export { tinkerBackend } from './tinker-backend.ts'
export type { CustomLossResult, SaveSettings, TrainingModel } from './training-model.ts'
export type { ForwardBackwardOutput, OutputTensor } from './wire/forward-backward.ts'
export type { SampleAnswer, SampleCall } from './wire/sampling.ts'
export {
  wireDatum,
  wireLoss,
  type WireDatum,
  type WireLoss,
  type WireTensor,
} from './wire/training-data.ts'
