import type { Capabilities } from '@tiltyard/core'
import type {
  EvaluationReport,
  Metrics,
  ProgressEvent,
  StepReport,
  SupervisedReport,
  Training,
} from '@tiltyard/train'

import { paint, type Screen } from '../output/screen.ts'

/** Steps between two lines that stay, where a live line shows each. */
const LIVE_LINE_EVERY = 10
/** Lines of a warm start, first and last included. */
const WARM_START_LINES = 8

/** Tells how a training goes: a live line on a terminal, a plain line per step elsewhere. */
export interface Narrator {
  opening(capabilities: Capabilities): void
  progress(event: ProgressEvent): void
  step(report: StepReport): void
}

export function createNarrator(screen: Screen, { config }: Training): Narrator {
  const { bold, dim } = paint(screen)
  const total = config.steps ?? config.dataset.batches
  const of = total === undefined ? '' : `/${total}`
  let playing: { readonly step: number; groups: number; episodes: number } | undefined

  const evaluation = (report: EvaluationReport) => {
    screen.line(
      `${evaluationLine(report)}${dim(` after ${report.step} steps, ${seconds(report.timing['time/evaluation'])}`)}`,
    )
  }
  const warmStart = ({ step, steps, values, timing, evaluations }: SupervisedReport) => {
    const line = `warm start ${step + 1}/${steps}  loss ${number(values['train_mean_nll'], 3)}  ${rate(timing['rate/trained_tokens'])}`
    const every = Math.max(1, Math.ceil(steps / (WARM_START_LINES - 1)))
    if (step === 0 || step + 1 === steps || (step + 1) % every === 0) screen.line(line)
    else screen.status(line)
    for (const report of evaluations) evaluation(report)
  }
  const status = () => {
    if (playing === undefined) return
    const { step, groups, episodes } = playing
    screen.status(`step ${step + 1}${of}  playing: ${episodes} episodes, ${groups} groups done`)
  }

  return {
    opening({ executor, models }) {
      const model = models.find(({ name }) => name === config.model)
      const size =
        model?.parameters === undefined
          ? ''
          : ` (${(model.parameters / 1e6).toFixed(2)} M parameters)`
      screen.line(
        `${bold(config.run)}: ${config.model}${size} on ${executor}, seed ${config.seed ?? 0}`,
      )
    },
    progress(event) {
      if (event.type === 'begin' && event.resumed)
        screen.line(`going on with ${event.run} after step ${event.from}`)
      if (event.type === 'warm_start') warmStart(event.report)
      if (event.type === 'evaluation') evaluation(event.report)
      if (
        event.type === 'rollout' &&
        event.event.type === 'episode' &&
        event.event.episode.key.split === 'train'
      ) {
        const { step } = event.event.episode.key
        if (playing?.step !== step) playing = { step, groups: 0, episodes: 0 }
        playing.episodes += 1
        status()
      }
      if (event.type === 'group') {
        if (playing?.step !== event.step) playing = { step: event.step, groups: 0, episodes: 0 }
        playing.groups = event.done
        status()
      }
    },
    step(report) {
      const line = stepLine(report, of)
      if (
        !screen.live ||
        report.step === 0 ||
        report.step + 1 === total ||
        (report.step + 1) % LIVE_LINE_EVERY === 0
      ) {
        screen.line(line)
      } else {
        screen.status(line)
      }
    },
  }
}

/** `held-out success 61.2%`: the share of an evaluation's groups with a reward above 0. */
export function evaluationLine({ name, values }: EvaluationReport): string {
  const passed = values['groups/passed_frac']
  if (typeof passed === 'number') return `${name} success ${(passed * 100).toFixed(1)}%`
  const numbers = Object.entries(values).map(([metric, value]) => `${metric} ${number(value, 4)}`)
  return `${name} ${numbers.join('  ')}`
}

function stepLine({ step, values, timing }: StepReport, of: string): string {
  return [
    `step ${step + 1}${of}`,
    `reward ${number(values['env/all/reward/total'], 3)}`,
    `groups ${number(values['groups/trained'], 0)}/${number(values['groups/played'], 0)}`,
    `reply ${number(values['env/all/sampled_tokens_per_reply'], 0)} tokens`,
    `sampled ${rate(timing['rate/sampled_tokens'])}`,
    `trained ${rate(timing['rate/trained_tokens'])}`,
    seconds(timing['time/total']),
  ].join('  ')
}

type Value = Metrics[string] | undefined

function number(value: Value, digits: number): string {
  return typeof value === 'number' ? value.toFixed(digits) : '–'
}

function rate(value: Value): string {
  if (typeof value !== 'number') return '– tokens/s'
  return value >= 1000 ? `${(value / 1000).toFixed(1)}k tokens/s` : `${value.toFixed(0)} tokens/s`
}

function seconds(value: Value): string {
  return `${number(value, 1)} s`
}
