/** A small training with what may keep a process alive: a server, a timer, and, where it is asked for, helpers that heed nothing. */
import { join } from 'node:path'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import { agentSource, commandAgent, createGateway, serveGateway } from '@tiltyard/gateway'
import { stepReward } from '@tiltyard/testkit'
import { defineTraining, listDataset } from '@tiltyard/train'

import { smallTraining } from '../faults/world.ts'

const [{ ENDING: ending, PATH = '' }, folder] = [process.env, process.cwd()]
const { warmStart: _, evaluations: __, ...config } = smallTraining(folder).config

const gateway = createGateway()
await serveGateway(gateway)
setInterval(() => {}, 1_000)

/** Leaves a file with its number, and stays. */
const helper = `
  require('node:fs').writeFileSync(${JSON.stringify(join(folder, 'helper-'))} + process.pid, '')
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1000)`
const source = agentSource({
  gateway,
  agent: commandAgent({ command: [process.execPath, '--eval', helper], env: { PATH } }),
  tasks: [{ id: 'one' }],
  rewards: ['done'],
})
const task = {
  source,
  task: { id: 'one', fingerprint: 'one' },
  size: 2,
  reward: stepReward('done'),
}
const helpers = listDataset({ name: 'helpers', tasks: [task], groupsPerBatch: 1, epochs: 1 })

const broken = { ...config.dataset, batch: () => Promise.reject(new Error('the file is gone')) }

export const training = defineTraining({
  ...config,
  steps: 2,
  ...(ending === 'fails' ? { dataset: broken } : {}),
  ...(ending === 'waits for a service'
    ? {
        backend: tinkerBackend({ baseUrl: 'http://127.0.0.1:9', apiKey: 'k' }),
        model: 'bigram',
        adaptation: { rank: 4 },
      }
    : {}),
  ...(ending === 'plays helpers' ? { dataset: helpers, steps: 1 } : {}),
  ...(ending === 'evaluates helpers'
    ? { evaluations: [{ name: 'held', dataset: helpers }], evalEvery: 1 }
    : {}),
})
