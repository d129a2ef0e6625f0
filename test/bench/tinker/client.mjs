/** Our client's half of `bench/tinker.ts`. Arguments: address, job, size. Prints seconds and peak memory as JSON. */
import { tinkerBackend } from '@tiltyard/backend-tinker'
import { tokenChunk, tokenPrompt } from '@tiltyard/core'

const [url, job, size] = process.argv.slice(2)
const backend = tinkerBackend({ baseUrl: url, apiKey: 'tml-dummy' })
const count = Number(size)
const SEQUENCE = 8_192

const idsOf = (length) => Int32Array.from({ length }, (_, index) => (index * 7919) % 150_000)

async function train() {
  const learner = await backend.learner({ model: 'toy', adaptation: { rank: 8 } })
  const data = Array.from({ length: count }, () => {
    const ids = idsOf(SEQUENCE + 1)
    return {
      // Views, as the other half has them.
      input: [tokenChunk(ids.subarray(0, -1))],
      targets: ids.subarray(1),
      logprobs: new Float32Array(SEQUENCE).fill(-1),
      advantages: new Float32Array(SEQUENCE).fill(0.5),
    }
  })
  return timed(async () => {
    const { logprobs } = await learner.forwardBackward(data, { name: 'importance_sampling' })
    if (logprobs.length !== count) throw new Error('data are missing')
  })
}

async function sample() {
  const sampler = await backend.sampler({ model: 'toy' })
  const prompts = Array.from({ length: count }, () => tokenPrompt(idsOf(512)))
  return timed(async () => {
    const samples = await Promise.all(
      prompts.map((prompt) => sampler.sample({ prompt, maxTokens: 512 })),
    )
    if (samples.some(([one]) => one.ids.length !== 512)) throw new Error('tokens are missing')
  })
}

/** Wall time and processor time of the work alone, without what starting costs. */
async function timed(work) {
  const before = process.cpuUsage()
  const began = performance.now()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - began) / 1_000, cpu: (user + system) / 1e6 }
}

const cost = job === 'train' ? await train() : await sample()
console.log(JSON.stringify({ ...cost, megabytes: process.resourceUsage().maxRSS / 1_024 }))
await backend.close()
