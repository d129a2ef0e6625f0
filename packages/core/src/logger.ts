/** Facts of a log line: names, ids, sizes, counts, durations. Never bodies, never secrets. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>

/** What a library needs to speak. Apps pass pino, the console, or nothing. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
