/** Where a program speaks to a person. `live` and `colour` are separate switches: forcing colour never turns live output on. */
export interface Screen {
  readonly live: boolean
  readonly colour: boolean
  readonly columns: number
  /** A line that stays. */
  line(text?: string): void
  /** Replaces the status line; without live output nothing is shown. */
  status(text: string): void
  /** Takes the status line away. */
  done(): void
}

export interface ScreenOptions {
  readonly stream: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }
  readonly env: Readonly<Record<string, string | undefined>>
}

const DEFAULT_COLUMNS = 80

export function createScreen({ stream, env }: ScreenOptions): Screen {
  const terminal = stream.isTTY === true && env['TERM'] !== 'dumb'
  const live = terminal && (env['CI'] === undefined || env['CI'] === '' || env['CI'] === 'false')
  const forced = env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '0'
  const colour = forced || (terminal && (env['NO_COLOR'] === undefined || env['NO_COLOR'] === ''))
  let shown = false
  const clear = () => {
    if (shown) stream.write('\r\u001b[2K')
    shown = false
  }
  return {
    live,
    colour,
    get columns() {
      return stream.columns ?? DEFAULT_COLUMNS
    },
    line(text = '') {
      clear()
      stream.write(`${text}\n`)
    },
    status(text) {
      if (!live) return
      const width = (stream.columns ?? DEFAULT_COLUMNS) - 1
      stream.write(`\r\u001b[2K${text.length > width ? `${text.slice(0, width - 1)}…` : text}`)
      shown = true
    },
    done: clear,
  }
}

/** Text that dims or stands out where colour is on. */
export function paint(screen: Pick<Screen, 'colour'>) {
  const wrap = (code: number) => (text: string) =>
    screen.colour ? `\u001b[${code}m${text}\u001b[0m` : text
  return { bold: wrap(1), dim: wrap(2), red: wrap(31), green: wrap(32), yellow: wrap(33) }
}
