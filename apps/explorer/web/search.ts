/** What stands in an address after its `?`. Whoever wrote it, only what is understood is taken. */
export type Search = Readonly<Record<string, unknown>>

export function text(search: Search, name: string): string | undefined {
  const value = search[name]
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function texts(search: Search, name: string): string[] | undefined {
  const value = search[name]
  const all = (Array.isArray(value) ? value : [value]).flatMap(
    (each) => text({ each }, 'each') ?? [],
  )
  return all.length === 0 ? undefined : all
}

export function number(search: Search, name: string): number | undefined {
  const value = Number(search[name] ?? Number.NaN)
  return search[name] === '' || !Number.isFinite(value) ? undefined : value
}

export function oneOf<Name extends string>(
  search: Search,
  name: string,
  names: readonly Name[],
): Name | undefined {
  return names.find((candidate) => candidate === search[name])
}

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** Without what isn't there, so that it doesn't show in the address. */
export function given<T extends object>(search: T): Given<T> {
  return Object.fromEntries(
    Object.entries(search).filter(([, value]) => value !== undefined),
  ) as Given<T>
}

/** A name as one segment of a path: browsers drop segments of dots alone. */
export function toSegment(name: string): string {
  return /^(~|\.+$)/.test(name) ? `~${name}` : name
}

export function fromSegment(segment: string): string {
  return segment.startsWith('~') ? segment.slice(1) : segment
}
