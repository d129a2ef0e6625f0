import { afterEach, beforeEach } from 'vitest'

/** Fails each test of a file that leaves a rejection without an owner, or makes Node warn. Call once at the file's head. */
export function expectQuiet(): void {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  const warnings: Error[] = []
  const warn = (warning: Error) => void warnings.push(warning)

  beforeEach(() => {
    process.on('unhandledRejection', note)
    process.on('warning', warn)
  })

  afterEach(async () => {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    process.off('unhandledRejection', note)
    process.off('warning', warn)
    const [first] = [...unhandled.splice(0), ...warnings.splice(0)]
    if (first !== undefined)
      throw new Error('a rejection nobody holds, or a warning', { cause: first })
  })
}
