// A server in a process of its own, for tests that block theirs. Prints its address, and when it samples; ends with its input.
import { bigramBackend } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'

const sessionMs = Number(process.argv[2])
const inner = bigramBackend()
const backend = {
  ...inner,
  async learner(from) {
    const learner = await inner.learner(from)
    return {
      ...learner,
      get steps() {
        return learner.steps
      },
      async publish(as) {
        const sampler = await learner.publish(as)
        return {
          ...sampler,
          sample(...request) {
            console.log('sampling')
            return sampler.sample(...request)
          },
        }
      },
    }
  },
}
const server = tinkerServer({ backend, limits: { sessionMs } })
console.log(await server.listen())
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
