/** A training that the command line can run in seconds: an agent that learns to sing. */
import { agentSource, createGateway } from '@tiltyard/gateway'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { defineTraining, listDataset } from '@tiltyard/train'

import { smallAgents } from './agents.ts'
import { lettersRenderer } from './letters.ts'
import { planned, shareOfVowels, singing, tinyBackend } from './singing.ts'

const source = agentSource({
  name: 'singing',
  gateway: createGateway(),
  tasks: singing,
  agent: async ({ prompt }, { model, signal }) =>
    shareOfVowels(await smallAgents.openai({ model, prompt, tools: [], stream: false, signal })),
})

export const training = defineTraining({
  run: 'singing',
  index: fsRunIndex({ folder: 'runs' }),
  backend: tinyBackend('runs/checkpoints'),
  model: 'tiny',
  adaptation: 'full',
  renderer: lettersRenderer(),
  dataset: listDataset({
    name: 'singing',
    groupsPerBatch: 2,
    tasks: await planned(source),
  }),
  steps: 12,
  limits: { replyTokens: 8 },
  optimizer: { learningRate: 0.02 },
  evalEvery: 0,
  checkpoints: { every: 6 },
})
