// A server in a process of its own, for tests that block theirs. Prints its address; ends with its input.
import { bigramBackend } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'

const sessionMs = Number(process.argv[2])
const server = tinkerServer({ backend: bigramBackend(), limits: { sessionMs } })
console.log(await server.listen())
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
