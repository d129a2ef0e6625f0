/**
 * What renderers of any model family share: printing as chat templates print, markers that only a renderer writes, going on from
 * sampled ids. Small pure functions; take those that fit.
 */
export * from './calls.ts'
export * from './json.ts'
export * from './python.ts'
export * from './replies.ts'
export * from './segments.ts'
