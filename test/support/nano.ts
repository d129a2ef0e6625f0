/** The shape of a policy that trains in seconds: enough to run every part, too small to learn much. */
export const nanoShape = {
  width: 32,
  heads: 2,
  kvHeads: 1,
  headSize: 16,
  hidden: 64,
  contextWindow: 512,
} as const
