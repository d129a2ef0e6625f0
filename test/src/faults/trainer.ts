/** The program that gets killed: trains in a folder, or goes on there, and says on stdout what it was told is durable. */
import { train } from '@tiltyard/train'

import { smallTraining } from './world.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('trainer.ts <folder>')
const training = smallTraining(folder)
const say = (line: string) => process.stdout.write(`${line}\n`)
const run = train(training, {
  start: 'either',
  takeOver: true,
  observer(event) {
    if (event.type === 'begin') say(`begin ${event.from}`)
    if (event.type === 'warm_start') say(`warm ${event.report.step}`)
  },
})
for await (const { step } of run) say(`step ${step}`)
const { checkpoint } = await run.finish()
say(`done ${checkpoint!.training!.path}`)
await training.config.backend.close()
await training.config.index.close()
