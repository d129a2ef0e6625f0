/** Of objects it looks at the kind only. @throws TypeError for what JSON has no place for. */
export function checkScalar(value: unknown): void {
  const isJson =
    typeof value === 'number'
      ? Number.isFinite(value)
      : typeof value === 'string' || typeof value === 'boolean' || value === null || isPlain(value)
  if (!isJson) throw new TypeError(`a universe holds JSON, which has no ${nameOf(value)}`)
}

function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === Object.prototype || prototype === null
}

function nameOf(value: unknown): string {
  if (typeof value === 'object' && value !== null) return value.constructor.name
  return typeof value === 'number' ? String(value) : typeof value
}
