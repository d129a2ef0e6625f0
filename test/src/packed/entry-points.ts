/**
 * The export that each published package is there for. A stranger who installs the package alone must
 * be able to import it.
 */
export const entryPoints: Readonly<Record<string, string>> = {
  '@tiltyard/core': 'TiltyardError',
  '@tiltyard/testkit': 'registerCases',
}
