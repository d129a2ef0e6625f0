import { ConfigError, type Content, type ImagePart } from '@tiltyard/core'
import { pythonTrim, pythonTrimEnd, pythonTrimStart, type Segment } from '@tiltyard/core/rendering'

import type { Scene, Segments } from './scene.ts'

/** Counts the images of a conversation, for layouts that number them. */
export interface ImageCounter {
  images: number
}

/** The segments of a message's content, images in their places. */
export function contentSegments(
  content: Content,
  scene: Scene,
  counter: ImageCounter,
  at: string,
): Segments {
  const trimmed = scene.layout.trim === 'all'
  if (typeof content === 'string') return [trimmed ? pythonTrim(content) : content]
  const segments = content.flatMap((part): Segments => {
    return part.type === 'text' ? [part.text] : imageSegments(part, scene, counter, at)
  })
  return trimmed ? trimSegments(segments) : segments
}

function imageSegments(
  image: ImagePart,
  scene: Scene,
  counter: ImageCounter,
  at: string,
): Segments {
  const { layout, write } = scene
  if (!layout.images) {
    throw new ConfigError('conversation', [
      {
        at,
        message: `holds an image, for which ${layout.name} has no place; use qwen3_vl or qwen3_5 and later`,
      },
    ])
  }
  counter.images += 1
  const picture = {
    type: 'image' as const,
    format: image.format,
    data: image.data,
    tokens: scene.imageTokens(image.width, image.height),
  }
  const number = scene.addVisionId ? `Picture ${counter.images}: ` : ''
  return write`${number}<|vision_start|>${picture}<|vision_end|>`
}

function trimSegments(segments: Segments): Segments {
  const text = joinText(segments)
  const first = text[0]
  if (typeof first === 'string') text[0] = pythonTrimStart(first)
  const last = text.at(-1)
  if (typeof last === 'string') text[text.length - 1] = pythonTrimEnd(last)
  return text
}

function joinText(segments: Segments): Segment[] {
  const joined: Segment[] = []
  for (const segment of segments) {
    const before = joined.at(-1)
    if (typeof segment === 'string' && typeof before === 'string') {
      joined[joined.length - 1] = before + segment
    } else {
      joined.push(segment)
    }
  }
  return joined
}
