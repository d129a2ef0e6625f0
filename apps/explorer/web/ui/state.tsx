import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { Problem } from '../api.ts'

/** What stands where an answer isn't yet, or won't be. */
function Waiting({ what }: { readonly what: string }) {
  return (
    <p className="state" role="status">
      Reading {what}…
    </p>
  )
}

export function Failed({ error }: { readonly error: unknown }) {
  return (
    <p className="state problem" role="alert">
      {error instanceof Problem ? error.message : String(error)}
    </p>
  )
}

export function Nothing({ children }: { readonly children: ReactNode }) {
  return <p className="state">{children}</p>
}

/** The answer of a query, or what stands in its place. */
export function Answer<Data>({
  query,
  what,
  children,
}: {
  readonly query: UseQueryResult<Data>
  readonly what: string
  readonly children: (data: Data) => ReactNode
}) {
  if (query.data !== undefined) return children(query.data)
  if (query.error !== null) return <Failed error={query.error} />
  return <Waiting what={what} />
}
