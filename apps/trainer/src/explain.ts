import { ConfigError, TiltyardError } from '@tiltyard/core'

/** Whether a server got no port: what was typed is at fault, no code. */
export function isListenError(error: unknown): error is NodeJS.ErrnoException & { port?: number } {
  return error instanceof Error && 'syscall' in error && error.syscall === 'listen'
}

/** An error as a person reads it: our own by their message, others with their stack. */
export function explain(error: unknown): string {
  if (isListenError(error)) {
    const { code, port } = error
    if (code === 'EADDRINUSE')
      return `port ${port} is in use; name another with --port, or leave it out for any that is free`
    return `${error.message}; see --port and --host`
  }
  if (error instanceof ConfigError || TiltyardError.is(error)) {
    const { message, cause } = error
    // Many messages say it already.
    const isNews = cause instanceof Error && !message.includes(cause.message)
    return isNews ? `${message}\n  because: ${cause.message}` : message
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
