/**
 * The program that gets killed: trains in a folder, or goes on there, and says on stdout what it was told is durable. It kills
 * itself so many milliseconds after the given line, counted from 1, so that no moment depends on when another process notices.
 */
import { train } from '@tiltyard/train'

import { smallTraining } from './world.ts'

const [folder, killedAt, milliseconds] = process.argv.slice(2)
if (folder === undefined) throw new Error('trainer.ts <folder> [<line> <milliseconds>]')
const training = smallTraining(folder)
const die = () => process.kill(process.pid, 'SIGKILL')
let lines = 0
const say = (line: string) => {
  // A pipe takes a line before the call returns.
  process.stdout.write(`${line}\n`)
  lines += 1
  if (lines !== Number(killedAt)) return
  if (Number(milliseconds) === 0) die()
  else setTimeout(die, Number(milliseconds))
}
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
