/** Makes the Python environments of these tests, where the machine has a Python for them; the tests find them made. */
import {
  OPENENV_VERSIONS,
  SDK_VERSIONS,
  cookbook,
  openenv,
  prepare,
  python,
  sdk,
} from './environments.ts'

for (const environment of [...SDK_VERSIONS.map(sdk), ...OPENENV_VERSIONS.map(openenv), cookbook])
  if (python(environment.minor).found !== undefined) console.log(await prepare(environment))
