/** Makes the Python environments of these tests, where the machine has a Python for them; the tests find them made. */
import {
  OPENENV_VERSIONS,
  SDK_VERSIONS,
  cookbook,
  openenv,
  prepare,
  python,
  sdk,
  type Environment,
} from './environments.ts'

// Two at a time, since unpacking keeps one core busy. Each brings along what it stands on, so no two may stand on the same.
await Promise.all([
  make([cookbook]),
  make([...SDK_VERSIONS.map(sdk), ...OPENENV_VERSIONS.toReversed().map(openenv)]),
])

async function make(environments: readonly Environment[]): Promise<void> {
  for (const environment of environments)
    if (python(environment.minor).found !== undefined) console.log(await prepare(environment))
}
