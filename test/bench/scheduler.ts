/**
 * How close training comes to the ideal overlap of sampling and learning, on a simulated clock: every reply and every learner call
 * takes a drawn time, and nothing else takes any. Learning a step takes as long as sampling it would over full slots. Ideal is
 * that one hides the other wholly. Times of replies are constant, log-normal (σ 0.5), or heavy-tailed (σ 1).
 *
 *   node --import tsx test/bench/scheduler.ts
 */
import {
  randomStream,
  type Backend,
  type Clock,
  type Learner,
  type RewardRule,
  type Sampler,
  type TaskSource,
} from '@tiltyard/core'
import {
  charIds,
  charRenderer,
  memoryRunIndex,
  scriptedEnv,
  simulatedClock,
} from '@tiltyard/testkit'
import { defineTraining, listDataset, train, type PipelineOptions } from '@tiltyard/train'

const STEPS = 40
const GROUPS = 8
const MEMBERS = 8
const SLOTS = 32
const REPLY_MS = 10_000
/** As long as sampling a step takes at best, so that neither side hides the other. */
const LEARN_MS = (REPLY_MS * GROUPS * MEMBERS) / SLOTS

/** Milliseconds with the mean REPLY_MS. */
type Latency = (seed: number) => number

function logNormal(sigma: number): Latency {
  return (seed) => {
    const random = randomStream(seed, 'latency')
    const normal =
      Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
    return REPLY_MS * Math.exp(sigma * normal - sigma ** 2 / 2)
  }
}

const latencies: Readonly<Record<string, Latency>> = {
  constant: () => REPLY_MS,
  'σ 0.5': logNormal(0.5),
  'σ 1': logNormal(1),
}

function simulatedBackend(clock: Clock, latency: Latency): Backend {
  const ids = charIds('ok')
  const logprobs = new Float32Array(ids.length).fill(-1)
  const sampler = (step: number): Sampler => ({
    specVersion: 'sampler/1',
    version: { id: `v${step}`, step },
    contextWindow: 100_000,
    async sample({ seeds }, { signal } = {}) {
      await clock.sleep(latency(seeds![0]!), signal)
      return [{ ids, logprobs, stop: 'stop' }]
    },
    logprobs: async () => new Float32Array(),
    async close() {},
  })
  let tail = Promise.resolve()
  const inTurn = (ms: number) => {
    tail = tail.then(() => clock.sleep(ms))
    return tail
  }
  const learner: Learner = {
    specVersion: 'learner/1',
    model: 'simulated',
    steps: 0,
    forward: async (data) => ({ logprobs: data.map(() => logprobs), loss: 0, metrics: {} }),
    async forwardBackward(data) {
      await inTurn((LEARN_MS * data.length) / (GROUPS * MEMBERS))
      return {
        logprobs: data.map(({ targets }) => new Float32Array(targets.length)),
        loss: 0,
        metrics: {},
      }
    },
    async optimStep() {
      await inTurn(0)
      return { metrics: {} }
    },
    async save(name) {
      await inTurn(0)
      return { path: name, kind: 'training' }
    },
    async publish({ step = 0 } = {}) {
      await inTurn(0)
      return sampler(step)
    },
    async close() {},
  }
  return {
    specVersion: 'backend/1',
    name: 'simulated',
    describe: async () => ({
      models: [{ name: 'simulated', contextWindow: 100_000 }],
      losses: ['importance_sampling', 'ppo'],
      mask: true,
      images: false,
      topLogprobs: false,
      deterministic: true,
      adaptations: ['full'],
      executor: 'simulated',
    }),
    learner: async () => learner,
    sampler: async () => sampler(0),
    checkpoints: () => ({ list: async () => [], exists: async () => true, async delete() {} }),
    async close() {},
  }
}

const source: TaskSource = {
  specVersion: 'task-source/1',
  name: 'simulated',
  fingerprint: 'simulated',
  steps: ['score'],
  async *tasks() {},
  async prepare() {},
  open: async (_, { seed }) =>
    scriptedEnv({ score: () => randomStream(seed, String(Math.random())).next() }),
  async close() {},
}
const rule: RewardRule = {
  specVersion: 'reward-rule/1',
  name: 'score',
  check() {},
  reward({ scores }) {
    const score = scores['score']
    return score !== undefined && 'value' in score ? { reward: score.value } : { unscored: 'none' }
  },
}

async function efficiency(latency: Latency, pipeline: PipelineOptions): Promise<number> {
  const clock = simulatedClock()
  const tasks = Array.from({ length: GROUPS }, (_, index) => ({
    source,
    task: { id: `t${index}`, fingerprint: `t${index}` },
    size: MEMBERS,
    reward: rule,
  }))
  const training = defineTraining({
    run: 'bench',
    index: memoryRunIndex(),
    backend: simulatedBackend(clock, latency),
    model: 'simulated',
    adaptation: 'full',
    renderer: charRenderer(),
    dataset: listDataset({ name: 'bench', tasks, groupsPerBatch: GROUPS }),
    steps: STEPS,
    rollout: { slots: SLOTS },
    optimizer: { learningRate: 1e-5 },
    pipeline,
    checkpoints: { every: 0, atStart: false },
  })
  await clock.drive(train(training, { clock }).finish())
  return (STEPS * LEARN_MS) / clock.now()
}

const modes: Readonly<Record<string, PipelineOptions>> = {
  synchronous: {},
  'streaming, 4 minibatches': { minibatches: 4 },
  'maxStaleness 1': { maxStaleness: 1 },
  'maxStaleness 2': { maxStaleness: 2 },
  'maxStaleness 4': { maxStaleness: 4 },
  'maxStaleness 2, streaming': { maxStaleness: 2, minibatches: 4 },
  'maxStaleness 1, by arrival': { maxStaleness: 1, groupsPerStep: GROUPS },
  'maxStaleness 2, by arrival': { maxStaleness: 2, groupsPerStep: GROUPS },
}

console.log(
  `${STEPS} steps of ${GROUPS} groups of ${MEMBERS}, ${SLOTS} slots; learning takes as long as sampling at best`,
)
console.log(`| share of the ideal overlap | ${Object.keys(latencies).join(' | ')} |`)
for (const [mode, pipeline] of Object.entries(modes)) {
  const shares: string[] = []
  for (const latency of Object.values(latencies))
    shares.push(`${(100 * (await efficiency(latency, pipeline))).toFixed(0)}%`)
  console.log(`| ${mode} | ${shares.join(' | ')} |`)
}
