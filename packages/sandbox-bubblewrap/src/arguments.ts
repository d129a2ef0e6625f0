import type { SandboxLimits } from '@tiltyard/core'

/** Folders of this machine that are the sandbox's own. */
export interface Place {
  readonly home: string
  readonly temporary: string
}

const HOME = '/home/agent'
const FILE_BLOCK_BYTES = 1024
const ADDRESS_BLOCK_BYTES = 1024

export interface Containment {
  readonly place: Place
  readonly readOnly: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly limits: Required<SandboxLimits>
  readonly script: string
}

/** The command line: a space with nothing in it but programs, and the script under limits that the kernel holds for each process. */
export function bubblewrapArguments({
  place,
  readOnly,
  env,
  limits,
  script,
}: Containment): readonly string[] {
  const variables = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME, LANG: 'C.UTF-8', ...env }
  const ulimits = [
    `ulimit -u ${limits.processes}`,
    `ulimit -v ${Math.floor(limits.memoryBytes / ADDRESS_BLOCK_BYTES)}`,
    `ulimit -f ${Math.floor(limits.diskBytes / FILE_BLOCK_BYTES)}`,
    'ulimit -c 0',
  ]
  return [
    ['--unshare-user', '--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    // In a user space of its own a command has all rights again: for mounts in memory that no limit counts, and for much of the kernel.
    ['--disable-userns'],
    ['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox', '--clearenv'],
    Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
    ['--ro-bind', '/usr', '/usr', '--ro-bind-try', '/etc/alternatives', '/etc/alternatives'],
    ['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    readOnly.flatMap((folder) => ['--ro-bind', folder, folder]),
    // No place to write but home and /tmp, which the limit on disk counts.
    ['--proc', '/proc', '--dev', '/dev', '--remount-ro', '/dev'],
    ['--bind', place.home, HOME, '--bind', place.temporary, '/tmp', '--chdir', HOME],
    ['--remount-ro', '/', '--json-status-fd', '3', '--'],
    [
      '/bin/bash',
      '-c',
      `${ulimits.join(' && ')} && exec 3>&- && exec /bin/bash -c "$1"`,
      'sandbox',
      script,
    ],
  ].flat()
}
