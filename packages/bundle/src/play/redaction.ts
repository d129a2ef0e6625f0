/** Values of secrets with fewer characters stand in texts by accident, and are not looked for. */
const MIN_SECRET_CHARS = 8

const SHOWN = '[secret]'

/** Takes the bundle's secrets out of what its tools say, before anybody else reads, cuts or keeps it. */
export interface Redaction {
  readonly text: (text: string) => string
  /** The error itself when it holds no secret; else one of its name, text and stack, without its cause. */
  readonly error: (error: unknown) => unknown
}

export function createRedaction(secrets: Readonly<Record<string, string>>): Redaction {
  // A value is looked for as it is and as it stands in JSON; the longest first, lest a part of it stay.
  const values = Object.values(secrets)
    .filter(({ length }) => length >= MIN_SECRET_CHARS)
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1)])
    .toSorted((a, b) => b.length - a.length)
  const text = (said: string) =>
    values.reduce((clean, value) => clean.replaceAll(value, SHOWN), said)
  const holdsSecret = (error: unknown) =>
    causesOf(error).some((cause) =>
      wordsOf(cause).some((said) => values.some((value) => said.includes(value))),
    )
  return {
    text,
    error(error) {
      if (!holdsSecret(error)) return error
      if (!(error instanceof Error)) return text(String(error))
      const clean = new Error(text(error.message))
      clean.name = error.name
      clean.stack = text(error.stack ?? '')
      return clean
    },
  }
}

/** The error and what caused it, each once. */
function causesOf(error: unknown): readonly unknown[] {
  const causes = new Set<unknown>()
  for (let cause = error; cause !== undefined && !causes.has(cause);) {
    causes.add(cause)
    cause = cause instanceof Error ? cause.cause : undefined
  }
  return [...causes]
}

function wordsOf(error: unknown): readonly string[] {
  return error instanceof Error ? [error.message, error.stack ?? ''] : [String(error)]
}
