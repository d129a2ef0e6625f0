/**
 * Trains the model of an agent that brings its own loop: tasks → agent behind the gateway → groups → update → new version, with an
 * evaluation that runs the same agent. On this machine's CPU, or with another backend, such as `tinkerBackend({ … })`.
 */
import { localBackend } from '@tiltyard/backend-local'
import type { Backend, RewardRule, TaskSource } from '@tiltyard/core'
import { agentSource, createGateway, type AgentContext, type AgentTask } from '@tiltyard/gateway'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining, listDataset, type PlannedTask, type Training } from '@tiltyard/train'

/** A question, and whether it was meant for training. */
interface Question extends AgentTask {
  readonly question: string
}

const questions: Readonly<Record<string, readonly Question[]>> = {
  train: ['Who are you?', 'What do you sell?', 'Where is my order?', 'May I send it back?'].map(
    (question, index) => ({ id: `train-${index}`, question }),
  ),
  held_out: [{ id: 'held-out-0', question: 'When do you open?' }],
}

/** The agent: any code that talks to a model. It asks, asks again for a shorter answer, and is paid for plain small letters. */
async function agent({ question }: Question, { model, signal }: AgentContext): Promise<number> {
  const messages = [{ role: 'user', content: question }]
  const ask = async (): Promise<string> => {
    const response = await model.fetch(`${model.baseURL}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${model.apiKey}` },
      body: JSON.stringify({ model: model.name, messages }),
      signal,
    })
    if (!response.ok) throw new Error(`the model answered with status ${response.status}`)
    const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] }
    messages.push({ role: 'assistant', content: choices[0].message.content })
    return choices[0].message.content
  }
  const first = await ask()
  messages.push({ role: 'user', content: 'Shorter.' })
  return (plainness(first) + plainness(await ask())) / 2
}

function plainness(text: string): number {
  return text === '' ? 0 : text.replaceAll(/[^a-z ]/g, '').length / text.length
}

/** The agent's own reward, as it stands. */
const reward: RewardRule = {
  specVersion: 'reward-rule/1',
  name: 'reward',
  check() {},
  reward: ({ scores }) => {
    const score = scores['reward'] ?? { unscored: 'the agent gave no reward' }
    return 'value' in score ? { reward: score.value } : score
  },
}

async function planned(source: TaskSource, split: string, size: number): Promise<PlannedTask[]> {
  const tasks: PlannedTask[] = []
  for await (const task of source.tasks(split)) tasks.push({ source, task, size, reward })
  return tasks
}

const tokenizer = await loadTokenizer(deskTokenizerFile)

/** A small policy that samples and learns in this process. */
function embedded(folder: string): Backend {
  const shape = { vocabularySize: tokenizer.vocabularySize, layers: 1, width: 64, hidden: 128 }
  return localBackend({ folder: `${folder}/checkpoints`, models: { small: { shape } } })
}

/** The whole, with everything that it writes in one folder. */
export async function agentTraining(
  folder: string,
  backend: Backend = embedded(folder),
): Promise<Training> {
  const source = agentSource({
    name: 'plain speech',
    gateway: createGateway(),
    agent,
    tasks: questions,
  })
  return defineTraining({
    run: 'agent',
    index: fsRunIndex({ folder }),
    backend,
    model: 'small',
    adaptation: 'full',
    renderer: qwenRenderer({ tokenizer, layout: 'qwen2_5' }),
    dataset: listDataset({
      name: 'plain speech',
      tasks: await planned(source, 'train', 8),
      groupsPerBatch: 4,
    }),
    steps: 30,
    limits: { replyTokens: 12 },
    optimizer: { learningRate: 0.02 },
    evaluations: [
      {
        name: 'held-out',
        dataset: listDataset({
          name: 'held-out',
          tasks: await planned(source, 'held_out', 4),
          groupsPerBatch: 1,
          epochs: 1,
        }),
      },
    ],
    evalEvery: 10,
  })
}

export const training = await agentTraining('runs')
