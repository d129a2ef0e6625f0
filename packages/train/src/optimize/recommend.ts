import { ConfigError } from '@tiltyard/core'

const exponents: Readonly<Record<string, number>> = { qwen: 0.0775, llama: 0.781 }

export interface ModelSize {
  /** Its family is told by the name: it contains `qwen` or `llama`. */
  readonly model: string
  /** Width of the hidden state. */
  readonly hiddenSize: number
  readonly adaptation: 'full' | 'lora'
}

/**
 * A learning rate to start from, calibrated on supervised fine-tuning by the authors of Tinker; reinforcement learning
 * usually wants less, 1e-5 to 4e-5 for LoRA.
 *
 *     5e-5 · (10 for LoRA, else 1) · (2000 / hiddenSize)^e      e = 0.0775 for Qwen, 0.781 for Llama
 *
 * Qwen with 4096 and LoRA: 4.729791e-4; Llama with 4096 and LoRA: 2.856415e-4. The rank does not enter.
 * @throws ConfigError for a family without calibration.
 */
export function recommendedLearningRate({ model, hiddenSize, adaptation }: ModelSize): number {
  const family = Object.keys(exponents).find((name) => model.toLowerCase().includes(name))
  if (family === undefined) {
    throw new ConfigError('learning rate', [
      {
        at: 'model',
        message: `no calibration for "${model}"; there is one for ${Object.keys(exponents).join(' and ')}`,
      },
    ])
  }
  return 5e-5 * (adaptation === 'lora' ? 10 : 1) * (2000 / hiddenSize) ** exponents[family]!
}
