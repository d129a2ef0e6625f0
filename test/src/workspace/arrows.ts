/** Who may depend on whom; everything absent here is an adapter and may depend on core alone. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  rollout: ['core'],
  train: ['core', 'rollout'],
  openenv: ['core', 'bundle'],
  'run-index-fs': ['core', 'run-log'],
  'run-index-s3': ['core', 'run-log'],
}

/** These get time, randomness and I/O as arguments. */
const withoutNode: ReadonlySet<string> = new Set(['core', 'rollout', 'train'])

/** The short names of our packages that `packages/<name>` may import. */
export function allowedFrom(name: string): readonly string[] {
  return arrows[name] ?? ['core']
}

export function mayUseNode(name: string): boolean {
  return !withoutNode.has(name)
}
