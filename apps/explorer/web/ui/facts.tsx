import { Text } from './text.tsx'

/** A name with its value; without a value it is left out. */
export type Fact = readonly [name: string, value: string | undefined]

export function FactList({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Text text={value} />
            </dd>
          </div>
        ),
      )}
    </dl>
  )
}
