import type { EpisodeAnswer } from '../../../src/api/answers.ts'
import { formatNumber, formatSigned, words } from '../../format.ts'
import { Text } from '../../ui/text.tsx'

/** What is known of the episode beside what was said. */
export function SidePanels({ answer }: { readonly answer: EpisodeAnswer }) {
  const { failures, tools, metrics } = answer
  return (
    <aside className="side" aria-label="About this episode">
      <Scores answer={answer} />
      <Training answer={answer} />
      {failures.length === 0 ? null : (
        <section className="panel">
          <h2>Failures</h2>
          <dl className="scores">
            {failures.map(({ phase, error }, index) => (
              <div key={index}>
                <dt className="bad">{error.name}</dt>
                <dd className="muted small">{phase}</dd>
                <dd className="note">
                  <Text text={error.message} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {Object.keys(metrics).length === 0 ? null : (
        <details className="panel">
          <summary>Counts of the play</summary>
          <dl className="scores">
            {Object.entries(metrics).map(([name, value]) => (
              <div key={name}>
                <dt>{words(name)}</dt>
                <dd>{formatNumber(value)}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      {tools.length === 0 ? null : (
        <details className="panel">
          <summary>Tools, {tools.length}</summary>
          {tools.map(({ name, description, parameters }) => (
            <details key={name} className="call" style={{ margin: '8px 0 0' }}>
              <summary className="name">
                <Text text={name} />
              </summary>
              {description === undefined ? null : (
                <p className="small">
                  <Text text={description} />
                </p>
              )}
              <pre className="said code">
                <Text text={parameters} />
              </pre>
            </details>
          ))}
        </details>
      )}
    </aside>
  )
}

function Scores({ answer: { episode } }: { readonly answer: EpisodeAnswer }) {
  const scores = Object.entries(episode.scores)
  const { reward } = episode
  return (
    <section className="panel">
      <h2>Scores</h2>
      {scores.length === 0 && reward === undefined ? (
        <p className="muted small">None: it wasn’t scored.</p>
      ) : null}
      <dl className="scores">
        {scores.map(([name, score]) => (
          <div key={name}>
            <dt>
              <Text text={name} />
            </dt>
            <dd>
              {'value' in score ? (
                <b>{formatNumber(score.value)}</b>
              ) : (
                <span className="badge warn">unscored</span>
              )}
            </dd>
            {'value' in score ? (
              score.note === undefined ? null : (
                <dd className="note">
                  <Text text={score.note} />
                </dd>
              )
            ) : (
              <dd className="note">
                <Text text={score.unscored} />
              </dd>
            )}
          </div>
        ))}
        {reward === undefined ? null : (
          <div>
            <dt>reward</dt>
            <dd>
              {'reward' in reward ? (
                <b>{formatNumber(reward.reward)}</b>
              ) : (
                <span className="badge warn">none</span>
              )}
            </dd>
            {'reward' in reward ? null : (
              <dd className="note">
                <Text text={reward.unscored} />
              </dd>
            )}
          </div>
        )}
      </dl>
    </section>
  )
}

function Training({ answer: { training } }: { readonly answer: EpisodeAnswer }) {
  if (training === undefined) return null
  const { step, advantage, untrained, data } = training
  return (
    <section className="panel">
      <h2>Training</h2>
      <dl className="scores">
        <div>
          <dt>update of step</dt>
          <dd>{step}</dd>
        </div>
        {advantage === undefined ? null : (
          <div>
            <dt>advantage</dt>
            <dd>
              <b>{formatSigned(advantage)}</b>
            </dd>
          </div>
        )}
        {untrained === undefined ? null : (
          <div>
            <dt>not trained</dt>
            <dd className="note">
              <Text text={words(untrained)} />
            </dd>
          </div>
        )}
        {data.map(({ sequence, length, trained }) => (
          <div key={sequence}>
            <dt>sequence {sequence}</dt>
            <dd>
              {formatNumber(trained)} of {formatNumber(length)} trained
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
