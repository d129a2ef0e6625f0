/** Whether what was sampled by weights that had seen `version` steps may train the weights that have seen `step`. */
export function isFresh(step: number, version: number, maxStaleness: number): boolean {
  return step - version <= maxStaleness
}
