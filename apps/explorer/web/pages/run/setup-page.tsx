import { useRun } from './run-layout.tsx'

/** What the run is: enough to begin it again. */
export function SetupPage() {
  const { record } = useRun()
  const { fingerprints, versions, git, config } = record
  return (
    <>
      <section className="panel" aria-label="Configuration">
        <h2>Configuration</h2>
        <pre className="json">{JSON.stringify(config, undefined, 2)}</pre>
      </section>
      <Facts title="Fingerprints" facts={fingerprints} />
      <Facts title="Versions" facts={versions} />
      {git === undefined ? null : (
        <Facts
          title="Git"
          facts={{ commit: git.commit, state: git.dirty ? 'with uncommitted changes' : 'clean' }}
        />
      )}
    </>
  )
}

function Facts({
  title,
  facts,
}: {
  readonly title: string
  readonly facts: Readonly<Record<string, string>>
}) {
  return (
    <section className="panel" aria-label={title}>
      <h2>{title}</h2>
      <dl className="scores">
        {Object.entries(facts).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="mono note">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
