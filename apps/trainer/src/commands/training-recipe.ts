import type { Training } from '@tiltyard/train'

/** Whether an export of a recipe is a training. */
export function isTraining(value: unknown): value is Training {
  return (
    typeof value === 'object' &&
    value !== null &&
    'specVersion' in value &&
    value.specVersion === 'training/1'
  )
}
