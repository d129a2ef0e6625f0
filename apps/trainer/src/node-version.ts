/** Whether a version is no older than another; numbers joined by dots. */
export function isAtLeast(version: string, floor: string): boolean {
  const has = version.split('.').map(Number)
  for (const [place, wanted] of floor.split('.').map(Number).entries()) {
    const own = has[place] ?? 0
    if (own !== wanted) return own > wanted
  }
  return true
}
