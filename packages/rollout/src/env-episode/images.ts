import { ConfigError, textOf, type Message, type PlayNeeds, type Renderer } from '@tiltyard/core'

/** What stands for an image where the renderer has none and the options allow it. */
export const IMAGE_PLACEHOLDER = '[image content]'

/** What a renderer lets tasks do, for `TaskSource.prepare`. */
export function playNeeds(
  renderer: Renderer,
  images: 'refuse' | 'placeholder' = 'refuse',
): PlayNeeds {
  return {
    tools: renderer.capabilities.tools,
    images: renderer.capabilities.images || images === 'placeholder',
    changedHead: true,
  }
}

/**
 * Messages with placeholders for their images, and how many were replaced.
 * @throws ConfigError when the options have no place for an image.
 */
export function showable<M extends Message>(
  messages: readonly M[],
  renderer: Renderer,
  images: 'refuse' | 'placeholder',
): { readonly messages: readonly M[]; readonly replaced: number } {
  if (images === 'refuse') {
    throw new ConfigError('images', [
      {
        at: 'images',
        message: `the task shows an image, and the renderer ${renderer.name} has no images; take another renderer, or set images to "placeholder"`,
      },
    ])
  }
  let replaced = 0
  const shown = messages.map((message) => {
    const { content } = message
    if (typeof content === 'string') return message
    replaced += content.filter(({ type }) => type === 'image').length
    return { ...message, content: textOf(content, IMAGE_PLACEHOLDER) }
  })
  return { messages: shown, replaced }
}
