/** A number as a reader compares it: four digits that count, no noise. */
export function formatNumber(value: number | null | undefined): string {
  if (value === undefined) return '–'
  if (value === null || !Number.isFinite(value)) return 'not finite'
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString('en-US')
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace('e', ' e')
  if (size >= 1_000) return value.toLocaleString('en-US', { maximumFractionDigits: 0 })
  return String(Number(value.toPrecision(4)))
}

/** Short enough for an axis: `20k`, `2e-8`. */
export function formatTick(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e4 && size < 1e9)
    return value.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 1 })
  if (value !== 0 && (size >= 1e9 || size < 1e-3))
    return Number(value.toPrecision(2)).toExponential()
  return String(Number(value.toPrecision(4)))
}

/** With its sign, for advantages: `+0.5`. */
export function formatSigned(value: number): string {
  return value > 0 ? `+${formatNumber(value)}` : formatNumber(value)
}

export function formatMs(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export function formatTime(at: number): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
}

export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
}

/** `reply_tokens` → `reply tokens` */
export function words(name: string): string {
  return name.replaceAll('_', ' ')
}
