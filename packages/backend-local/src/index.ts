export { localBackend } from './local-backend.ts'
export type { InitialWeights } from './model/parameters.ts'
export type { ModelShapeInput } from './model/shape.ts'
export type { LocalBackendOptions, LocalModel } from './options.ts'
